// Builds the page into a few files with hashed names; they end up inside the program (see docs/viewer-protocol.md).
import { defineConfig } from 'vite'

declare const process: { env: Record<string, string | undefined> }

export default defineConfig({
  base: './',
  build: {
    outDir: process.env.US_PAGE_OUT ?? 'dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': 'http://localhost:8080' } },
})
