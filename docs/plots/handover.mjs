// The moving picture of the README: node docs/plots/handover.mjs, with the environment of tests/browser/support.mjs
// and the current directory docs/images. Needs ffmpeg. Plays a hand-over with real processes in domains 186 to 188:
// the hardware drives, its process is stopped in full drive, the proxy carries on, and the operator's tool reads on.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { app, browse, open, run, scene, until } from '../../tests/browser/support.mjs'

const program = process.env.US_PROGRAM
const operators = { ...process.env, ROS_DOMAIN_ID: '186' }
const frames = mkdtempSync(join(tmpdir(), 'handover-'))
const start = (file, args, env, stdio = 'ignore') => {
  const child = spawn(file, args, { stdio, env })
  process.on('exit', () => child.kill('SIGKILL'))
  return child
}
const status = () => spawnSync(program, ['switch', 'k10', '--status'], { encoding: 'utf8', env: operators, timeout: 90000 }).stdout

const model = join(process.env.US_SOURCE_DIR, 'models', 'k10.urdf')
const hardware = start(join(dirname(program), 'examples', 'k10_hardware'), [model, '--domain', '187'])
process.env.ROS_DOMAIN_ID = '188'
const world = await run([scene('flat.xml')])
start(program, ['switch', 'k10', '--operators', '186', '--hardware', '187', '--proxy', '188', '--mode', 'shadow', '--evidence', 'none'])
const browser = await browse()
const page = await open(browser, world.url, { viewport: { width: 640, height: 380 }, colorScheme: 'dark' })
await until(() => status().includes('side by side: ok'), 'the two agree')

// What the operator's own tool reads, and nothing else.
const reading = { speed: 0, x: 0, y: 0, age: performance.now() }
const echo = start(program, ['echo', '/k10/odom', '--csv', '--field', 'pose.pose.position.x,pose.pose.position.y,twist.twist.linear.x'],
  operators, ['ignore', 'pipe', 'ignore'])
echo.stdout.on('data', (text) => {
  const v = String(text).trim().split('\n').pop().split(',').map(Number)
  if (v.length === 4 && v.every(Number.isFinite)) Object.assign(reading, { x: v[1], y: v[2], speed: v[3], age: performance.now() })
})

await app(page, () => {
  for (const e of document.querySelectorAll('[data-testid^="panel-"]')) {
    const tab = document.querySelector(`[data-testid="tab-${e.dataset.testid.slice(6)}"]`)
    if (e.offsetParent && tab) tab.click()
  }
  const box = document.createElement('div')
  box.id = 'caption'
  box.style = 'position:fixed;left:0;right:0;bottom:0;z-index:1000;padding:0 16px;height:52px;align-items:center;display:flex;gap:24px;font:600 15px monospace;background:#10141c;color:#dde'
  document.body.append(box)
  window.understudy.app.view.setLayer('shadows', true)
  const base = window.understudy.app.world.links.findIndex((link) => link.name === 'k10/base')
  window.understudy.app.view.setCamera('follow', base)
})

const drive = start(program, ['drive', 'k10', '--v', '0.4', '--w', '0.15', '--time', '60', '--quiet'], operators)
await page.waitForTimeout(3000)
const fps = 5
const seconds = 8
const begin = performance.now()
let plug = 'plugged in'
let n = 0
for (let due = 0; due < seconds; due += 1 / fps) {
  if (due > 3 && plug === 'plugged in') {
    hardware.kill('SIGSTOP')
    plug = 'PLUG PULLED'
  }
  await app(page, ([r, p]) => {
    const line = window.understudy.app.status?.authority?.[0] ?? ''
    const who = /"control":"(\w+)"/.exec(line)?.[1] ?? '?'
    const colour = who === 'hardware' ? '#7bd88f' : '#ffb454'
    document.getElementById('caption').innerHTML =
      `<span>/k10/odom&nbsp; ${r.speed.toFixed(2)} m/s</span><span>hardware: <b style="color:${p === 'plugged in' ? '#7bd88f' : '#ff6b6b'}">${p}</b></span>` +
      `<span style="margin-left:auto">in control: <b style="color:${colour}">${who}</b></span>`
  }, [reading, plug])
  await page.screenshot({ path: join(frames, `${String(n++).padStart(3, '0')}.png`) })
  const wait = begin + 1000 * (due + 1 / fps) - performance.now()
  if (wait > 0) await page.waitForTimeout(wait)
}
const taken = (performance.now() - begin) / 1000
drive.kill('SIGINT')
console.log(`${n} pictures in ${taken.toFixed(1)} s`)
const filter = `fps=${fps},split[a][b];[a]palettegen=max_colors=64[p];[b][p]paletteuse=dither=none:diff_mode=rectangle`
const made = spawnSync('ffmpeg', ['-y', '-framerate', String(n / taken), '-i', join(frames, '%03d.png'), '-vf', filter, 'handover.gif'], { encoding: 'utf8' })
if (made.status !== 0) throw new Error(made.stderr)
rmSync(frames, { recursive: true })
await browser.close()
await world.stop()
process.exit(0)
