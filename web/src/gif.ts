// Frames as an animated GIF (GIF89a): one palette of the colours that occur most, LZW as the format has it.

/** Pictures of equal size, and how long each is shown, in hundredths of a second. */
export class Gif {
  private readonly parts: number[][] = [];
  private palette: number[] | null = null;
  private readonly nearest = new Map<number, number>();
  frames = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly delay: number,
  ) {}

  add(pixels: Uint8ClampedArray): void {
    if (!this.palette) {
      this.palette = popular(pixels);
      this.parts.push(this.head(this.palette));
    }
    const indexed = new Uint8Array(this.width * this.height);
    for (let i = 0; i < indexed.length; i++) indexed[i] = this.index(pixels[4 * i]!, pixels[4 * i + 1]!, pixels[4 * i + 2]!);
    const { delay, width, height } = this;
    this.parts.push([0x21, 0xf9, 4, 0, ...word(delay), 0, 0, 0x2c, 0, 0, 0, 0, ...word(width), ...word(height), 0]);
    this.parts.push(compressed(indexed));
    this.frames += 1;
  }

  /** The file. */
  bytes(): Uint8Array<ArrayBuffer> {
    const all = [...this.parts, [0x3b]];
    const made = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of all) {
      made.set(part, at);
      at += part.length;
    }
    return made;
  }

  private head(palette: readonly number[]): number[] {
    const table = palette.flatMap((rgb) => [rgb >> 16, (rgb >> 8) & 255, rgb & 255]);
    const loop = [0x21, 0xff, 11, ...text("NETSCAPE2.0"), 3, 1, 0, 0, 0];
    return [...text("GIF89a"), ...word(this.width), ...word(this.height), 0xf7, 0, 0, ...table, ...loop];
  }

  private index(r: number, g: number, b: number): number {
    const key = ((r >> 3) << 10) | ((g >> 3) << 5) | (b >> 3);
    const known = this.nearest.get(key);
    if (known !== undefined) return known;
    let best = 0;
    let least = Infinity;
    this.palette!.forEach((rgb, i) => {
      const far = (r - (rgb >> 16)) ** 2 + (g - ((rgb >> 8) & 255)) ** 2 + (b - (rgb & 255)) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    this.nearest.set(key, best);
    return best;
  }
}

/** 256 colours, those that occur most, each as it occurs among its like. */
function popular(pixels: Uint8ClampedArray): number[] {
  const counts = new Map<number, [number, number]>();
  for (let i = 0; i < pixels.length; i += 4) {
    const rgb = (pixels[i]! << 16) | (pixels[i + 1]! << 8) | pixels[i + 2]!;
    const key = ((rgb >> 19) << 10) | (((rgb >> 11) & 31) << 5) | ((rgb >> 3) & 31);
    const one = counts.get(key);
    if (one) one[0] += 1;
    else counts.set(key, [1, rgb]);
  }
  const most = [...counts.values()].sort((a, b) => b[0] - a[0]).slice(0, 256).map(([, rgb]) => rgb);
  return [...most, ...new Array<number>(256 - most.length).fill(0)];
}

/** LZW with codes of 9 to 12 bits, in blocks of at most 255 bytes. */
export function compressed(pixels: Uint8Array): number[] {
  const made: number[] = [8];
  let block: number[] = [];
  let bits = 0;
  let held = 0;
  let size = 9;
  const put = (code: number): void => {
    held |= code << bits;
    bits += size;
    while (bits >= 8) {
      block.push(held & 255);
      held >>>= 8;
      bits -= 8;
      if (block.length === 255) flush();
    }
  };
  const flush = (): void => {
    if (!block.length) return;
    made.push(block.length);
    for (const byte of block) made.push(byte);
    block = [];
  };
  const CLEAR = 256;
  let codes = new Map<number, number>();
  let next = CLEAR + 2;
  put(CLEAR);
  let now = pixels[0] ?? 0;
  for (let i = 1; i < pixels.length; i++) {
    const key = (now << 8) | pixels[i]!;
    const known = codes.get(key);
    if (known !== undefined) {
      now = known;
      continue;
    }
    put(now);
    if (next === 4096) {
      put(CLEAR);
      codes = new Map();
      next = CLEAR + 2;
      size = 9;
    } else {
      if (next === 1 << size) size += 1;
      codes.set(key, next++);
    }
    now = pixels[i]!;
  }
  put(now);
  put(CLEAR + 1);
  if (bits) block.push(held & 255);
  flush();
  made.push(0);
  return made;
}

function word(x: number): [number, number] {
  return [x & 255, x >> 8];
}

function text(x: string): number[] {
  return Array.from(x, (c) => c.charCodeAt(0));
}
