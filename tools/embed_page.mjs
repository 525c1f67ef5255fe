// node embed_page.mjs DIST OUT.c: the files below DIST, compressed with gzip, as a table in C (view/view__page_files.h).
import { readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'

const [dist, out] = process.argv.slice(2)
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .sort()

let text = '// The page: made from web/ by tools/build_page.\n#include "view/view__page_files.h"\n\n'
let table = ''
let total = 0
files.forEach((file, i) => {
  const type = types[extname(file)]
  if (!type) throw new Error(`${file}: no type is known for files of this kind; add it to tools/embed_page.mjs`)
  const bytes = gzipSync(readFileSync(file), { level: 9 })
  total += bytes.length
  const rows = []
  for (let k = 0; k < bytes.length; k += 32) rows.push([...bytes.subarray(k, k + 32)].join(','))
  text += `static const unsigned char file_${i}[] = {\n${rows.join(',\n')}};\n`
  const path = '/' + relative(dist, file).split('\\').join('/')
  table += `    {"${path}", "${type}", file_${i}, sizeof file_${i}, ${path.startsWith('/assets/')}},\n`
})
text += `\nconst usi_web_file usi_page_files[] = {\n${table}};\nconst int32_t usi_page_n_file = ${files.length};\n`
writeFileSync(out + '.new', text)
renameSync(out + '.new', out)
console.log(`page: ${files.length} files, ${(total / 1000).toFixed(0)} kB compressed`)
