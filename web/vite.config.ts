import { defineConfig } from "vite";

// The built page is part of the Python package: fixed names, nothing loaded from elsewhere.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../python/inprofile/view/page",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    target: "es2022",
    reportCompressedSize: false,
    rollupOptions: { output: { entryFileNames: "page.js", assetFileNames: "page[extname]" } },
  },
});
