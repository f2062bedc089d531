//! Our meters' side of the comparison: `meter-verdicts METER MODE` reads setups and packets, and writes a colour a packet.
//!
//! Standard input, little-endian, any number of: u64 cir, u64 second rate (pir or eir), both bytes per second, u64 cbs,
//! u64 second burst (pbs or ebs) in bytes, u64 number of packets; then for each packet u64 nanoseconds, u32 bytes,
//! u32 colour in. Standard output: a byte a packet, 0 green, 1 yellow, 2 red. `dpdk.c` does the same.

use std::io::{self, BufReader, BufWriter, Read, Write};

use inprofile_core::packet::{Colour, Packet};
use inprofile_core::params::{Context, Param, Value, Values};
use inprofile_core::registry::{AnyMarker, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Rate, Time};
use inprofile_core::verdict::{Mark, Silent};

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [meter, mode] = &args[..] else { return Err(io::Error::other("meter-verdicts METER MODE")) };
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    let mut rng = Rng::for_component(0, "unused");
    while let Some([cir, second, cbs, other, packets]) = numbers(&mut input)? {
        let mut marker = build(meter, mode, [cir, second], [cbs, other]).map_err(io::Error::other)?;
        for _ in 0..packets {
            let Some([at, packed]) = numbers(&mut input)? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let colour = Colour::ALL[(packed >> 32) as usize];
            let packet = Packet { size: packed as u32, colour, ..Packet::default() };
            let Mark::Pass(colour) = marker.mark(Time(at * 1000), &packet, &mut rng, &mut Silent) else {
                return Err(io::Error::other("a meter drops nothing"));
            };
            output.write_all(&[colour as u8])?;
        }
    }
    output.flush()
}

/// The next numbers; `None` at the end of the input.
fn numbers<const N: usize>(input: &mut impl Read) -> io::Result<Option<[u64; N]>> {
    let mut all = [0; N];
    for (i, number) in all.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        match input.read_exact(&mut bytes) {
            Err(e) if i == 0 && e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            done => done?,
        }
        *number = u64::from_le_bytes(bytes);
    }
    Ok(Some(all))
}

/// The meter as an experiment file would have it built.
fn build(meter: &str, mode: &str, rates: [u64; 2], bursts: [u64; 2]) -> Result<AnyMarker, String> {
    let registry = Registry::default();
    let entry = registry.markers.iter().find(|e| e.name == meter).ok_or("no such meter")?;
    let rate = |n: u64| Value::Rate(Rate(n * 8));
    let burst = |n: u64| Value::Backlog(Backlog::Bytes(n as f64));
    let mode = inprofile_core::marker::meter::Mode::ALL.into_iter().find(|m| m.word() == mode);
    let mode = mode.ok_or("no such mode")?.to_value();
    let values = entry.fields.iter().map(|field| {
        let value = match field.name {
            "cir" => rate(rates[0]),
            "pir" | "eir" => rate(rates[1]),
            "cbs" => burst(bursts[0]),
            "pbs" | "ebs" => burst(bursts[1]),
            "mode" => mode.clone(),
            _ => match field.default {
                inprofile_core::params::Default::Value(default) => default(),
                _ => return Err(format!("{meter} wants {}", field.name)),
            },
        };
        Ok((field.name, value))
    });
    let values = Values(values.collect::<Result<_, _>>()?);
    // Packets of a byte, so that no setup is refused for what full packets could not do.
    let context = Context { link_rate: None, contract: None, packet: Bytes(1), limit: None };
    (entry.check)(&values, &context).map_err(|f| f.problem)?;
    Ok((entry.build)(&values, &context))
}
