// The pictures of docs/walker.md: node docs/plots/walker.mjs, with the environment of tests/browser/support.mjs and the current directory docs/images.
//
// Walks each of the walker's scenes straight on for 17 s and takes a picture now and then; the paths and attitudes come from the run's own CSV file.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { app, browse, open, run, scene, until } from '../../tests/browser/support.mjs'

const FAULT_AT = 4, END = 17, SPEED = 0.2
const runs = [
  { name: 'whole', title: 'whole', colour: '#444444', file: 'hexapod.xml', set: ['--set', 'relief=0'], faults: [], times: [] },
  { name: 'torque-loss', title: 'motors without torque', colour: '#0072b2', file: 'hexapod-torque-loss.xml', set: [], times: [3.9, 4.6, 5.2, 16],
    faults: ['motor:front_left_femur=dead', 'motor:front_left_tibia=dead'] },
  { name: 'blockage', title: 'one joint blocked', colour: '#009e73', file: 'hexapod-blockage.xml', set: [], times: [3.9, 8, 12, 16],
    faults: ['motor:middle_right_coxa=blocked'] },
  { name: 'breakage', title: 'one joint broken', colour: '#d55e00', file: 'hexapod-breakage.xml', set: [], times: [3.9, 4.3, 13.9, 14.4],
    faults: ['joint:front_left_femur=broken'], eye: [-0.45, 1.1, 0.6] },
]
const work = mkdtempSync(join(tmpdir(), 'walker-'))
const browser = await browse()
// Step by step, so that everything comes at its time however busy the machine is.
async function advance(page, t) {
  for (;;) {
    const now = await app(page, () => window.understudy.app.time)
    if (now > t - 5e-4) return
    const to = Math.min(t, now + 1)
    await app(page, ([v, n]) => {
      window.understudy.app.drive('hexapod', v, 0, 0)
      return window.understudy.app.command(`step ${n}`)
    }, [SPEED, Math.round((to - now) * 1000)])
    await until(() => app(page, (then) => window.understudy.app.time > then - 5e-4, to), `t = ${to} s`, 120)
  }
}

// From before it and its left, or from where the run says; as far as it takes to see it and what lies around it.
async function look(page, eye = [0.85, 0.95, 0.7]) {
  await app(page, (from) => {
    const a = window.understudy.app, base = a.world.links.findIndex((link) => link.name === 'hexapod/base')
    const [x, y] = a.poses.subarray(7 * base, 7 * base + 2), { controls, camera } = a.view.cameras
    a.view.setCamera('orbit')
    controls.target.set(x, y + 0.05, 0.1)
    camera.position.set(x + from[0], y + from[1], from[2])
    a.view.redraw()
  }, eye)
}

async function walk(r) {
  const values = ['x', 'y', 'z', 'qw', 'qx', 'qy', 'qz'].map((part) => `hexapod/base.${part}`).join()
  const csv = join(work, `${r.name}.csv`)
  const world = await run([scene(r.file), ...r.set, '--set', 'timeout=2 s', '--offline', '--port', '0', '--csv', csv, '--csv-rate', '50', '--values', values])
  try {
    await show(r, world)
  } finally {
    await world.stop()
  }
  const all = readFileSync(csv, 'utf8').trim().split('\n').slice(1).map((line) => line.split(',').map(Number))
  const rows = all.slice(all.findLastIndex((row, i) => i > 0 && row[0] < all[i - 1][0]))
  r.path = rows.filter((row) => row[0] <= END).map(([t, x, y, , qw, qx, qy, qz]) => {
    const up = 1 - 2 * (qx * qx + qy * qy)
    return { t, x, y, tilt: (Math.acos(Math.min(up, 1)) * 180) / Math.PI, yaw: (Math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz)) * 180) / Math.PI }
  })
}

async function show(r, world) {
  const options = { viewport: { width: 460, height: 340 }, colorScheme: 'light' }
  // A busy machine may take longer than the page waits.
  const page = await open(browser, world.url, options).catch(() => open(browser, world.url, options))
  await page.addStyleTag({
    content: `.shell > :not(.viewport), .viewport > :not(canvas) { display: none !important }
      .viewport { position: fixed !important; inset: 0; width: 100vw; height: 100vh }`,
  })
  // It begins anew now that somebody looks.
  await app(page, async () => {
    window.understudy.app.view.setLayer('shadows', true)
    await window.understudy.app.command('pause')
    await window.understudy.app.command('reset')
  })
  await until(() => app(page, () => window.understudy.app.time < 1e-6), 'it is at its start')
  r.pictures = []
  const events = [...r.times.map((t) => ({ t, what: null })), ...r.faults.map((what) => ({ t: FAULT_AT, what }))].sort((a, b) => a.t - b.t)
  for (const e of events) {
    await advance(page, e.t)
    if (e.what) {
      await app(page, (what) => window.understudy.app.command(`fault hexapod ${what}`), e.what)
      continue
    }
    await look(page, r.eye)
    await page.waitForTimeout(2500)
    r.pictures.push({ t: await app(page, () => window.understudy.app.time), png: (await page.screenshot()).toString('base64') })
  }
  await advance(page, END)
  await page.context().close()
}

// ---- drawing

async function paint(html, width, height, path) {
  const page = await (await browser.newContext({ viewport: { width, height } })).newPage()
  await page.setContent(`<body style="margin:0;background:#fff;font:13px 'DejaVu Sans',sans-serif;color:#333">${html}</body>`)
  await page.screenshot({ path })
  await page.context().close()
}

const strip = (r) =>
  r.pictures.map((p) => `<figure style="margin:0;display:inline-block;width:300px"><img style="width:298px;display:block" src="data:image/png;base64,${p.png}">
    <figcaption style="padding:3px 6px">${p.t.toFixed(1)} s</figcaption></figure>`).join('')

// One diagram: axes with ticks, a curve for each run.
function diagram({ width, height, title, x, y, of, curves, extra = '' }) {
  const left = 52, right = 12, top = 26, bottom = 40
  const px = (v) => left + ((v - x.from) / (x.to - x.from)) * (width - left - right)
  const py = (v) => height - bottom - ((v - y.from) / (y.to - y.from)) * (height - top - bottom)
  const ticks = (a) => Array.from({ length: Math.round((a.to - a.from) / a.step) + 1 }, (_, i) => +(a.from + i * a.step).toFixed(6))
  const grid = ticks(x).map((v) => `<line x1="${px(v)}" x2="${px(v)}" y1="${top}" y2="${height - bottom}" stroke="#ddd"/><text x="${px(v)}" y="${height - bottom + 16}" text-anchor="middle">${v}</text>`)
    .concat(ticks(y).map((v) => `<line y1="${py(v)}" y2="${py(v)}" x1="${left}" x2="${width - right}" stroke="#ddd"/><text x="${left - 6}" y="${py(v) + 4}" text-anchor="end">${v}</text>`))
  const lines = curves.map((r) => `<polyline fill="none" stroke="${r.colour}" stroke-width="2" points="${r.path.map((p) => of(p).map((v, i) => (i ? py(v) : px(v)).toFixed(1)).join()).join(' ')}"/>`)
  return `<svg width="${width}" height="${height}" font-size="12" fill="#333">${grid.join('')}<clipPath id="c${title.length}"><rect x="${left}" y="${top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath>
    <g clip-path="url(#c${title.length})">${lines.join('')}</g>${extra && `<line x1="${px(FAULT_AT)}" x2="${px(FAULT_AT)}" y1="${top}" y2="${height - bottom}" stroke="#999" stroke-dasharray="4 3"/>`}
    <text x="${left}" y="16" font-weight="bold">${title}</text><text x="${(left + width) / 2}" y="${height - 6}" text-anchor="middle">${x.label}</text>
    <text transform="translate(13 ${height / 2}) rotate(-90)" text-anchor="middle">${y.label}</text></svg>`
}

for (const r of runs) await walk(r)
for (const r of runs) if (r.pictures.length) await paint(strip(r), 1200, 252, `walker-${r.name}.png`)
const legend = runs.map((r) => `<span style="color:${r.colour};margin-right:18px">&#9644; ${r.title}</span>`).join('')
await paint(
  diagram({ width: 500, height: 380, title: 'path of the body, 17 s at 0.2 m/s', x: { from: 0, to: 3.5, step: 0.5, label: 'x, m' }, y: { from: -1.75, to: 0.75, step: 0.25, label: 'y, m' }, of: (p) => [p.x, p.y], curves: runs }) +
    runs.slice(1).map((r) => diagram({ width: 232, height: 380, title: r.title, x: { from: 0, to: END, step: 5, label: 'time, s' }, y: { from: 0, to: 20, step: 5, label: 'tilt of the body, degrees' }, of: (p) => [p.t, p.tilt], curves: [{ ...r }, runs[0]], extra: 'fault' })).join('') +
    `<div style="padding-left:52px">${legend}</div>`, 1200, 410, 'walker.png')
for (const r of runs) {
  const tilts = r.path.filter((p) => p.t > FAULT_AT), last = r.path[r.path.length - 1]
  console.log(`${r.name}: x ${last.x.toFixed(2)} y ${last.y.toFixed(2)} yaw ${last.yaw.toFixed(1)} greatest tilt ${Math.max(...tilts.map((p) => p.tilt)).toFixed(1)} degrees`)
}
await browser.close()
rmSync(work, { recursive: true })
