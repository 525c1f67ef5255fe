// The pictures of docs/walk-through.md: node docs/plots/walk-through.mjs, with the environment of tests/browser/support.mjs and the current directory
// docs/images. Plays that day with real processes, in domains 190 to 192, and looks at the page of the proxy.
import { spawn, spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { app, browse, open, run, scene, until } from '../../tests/browser/support.mjs'

const program = process.env.US_PROGRAM
const operators = { ...process.env, ROS_DOMAIN_ID: '190' }
const start = (file, args, env) => {
  const child = spawn(file, args, { stdio: 'ignore', env })
  process.on('exit', () => child.kill('SIGKILL'))
  return child
}
const ask = (...args) => spawnSync(program, args, { encoding: 'utf8', env: operators, timeout: 90000 })

const hardware = start(join(dirname(program), 'examples', 'k10_hardware'), [join(process.env.US_SOURCE_DIR, 'models', 'k10.urdf'), '--domain', '191'])
process.env.ROS_DOMAIN_ID = '192'
const world = await run([scene('flat.xml')])
start(program, ['switch', 'k10', '--operators', '190', '--hardware', '191', '--proxy', '192', '--mode', 'shadow', '--evidence', 'none'])
const browser = await browse()
const page = await open(browser, world.url + '?quality=high', { viewport: { width: 1100, height: 560 }, colorScheme: 'dark' })
const said = (what) => until(() => app(page, (w) => window.understudy.app.status?.authority?.some((line) => line.includes(w)), what), what)
// These panels and no other.
const show = async (...names) => {
  const tabs = await page.locator('[data-testid^="tab-"]').evaluateAll((list) => list.map((e) => e.dataset.testid.slice(4)))
  for (const name of tabs) {
    if ((await page.getByTestId(`panel-${name}`).isVisible()) !== names.includes(name)) await page.getByTestId(`tab-${name}`).click()
  }
}
// Time goes on: who stands still is lost. The picture is of the moment.
const picture = async (path) => {
  await page.waitForTimeout(1500)
  await page.screenshot({ path })
}
await show('authority')
await app(page, () => window.understudy.app.view.setLayer('shadows', true))
await said('"mode":"shadow"')
await until(() => ask('switch', 'k10', '--status').stdout.includes('side by side: ok'), 'the two agree')

let drive = start(program, ['drive', 'k10', '--v', '0.4', '--w', '0.1', '--time', '30', '--quiet'], operators)
await page.waitForTimeout(4000)
await picture('walk-shadow.png')
hardware.kill('SIGSTOP')
await said('has been silent')
await picture('walk-proxy.png')
drive.kill('SIGINT')

// A motor of the proxy dies, and time stands.
await show('scope', 'authority')
for (const name of ['k10/front_left_drive.v', 'k10/front_left_drive.torque', 'k10/front_right_drive.torque']) {
  await page.getByTestId('scope-add').fill(name)
  await page.getByTestId('scope-add').press('Enter')
}
drive = start(program, ['drive', 'k10', '--v', '0.4', '--w', '0.1', '--time', '8', '--quiet'], operators)
await page.waitForTimeout(3000)
await app(page, () => window.understudy.app.command('fault k10 motor:front_left_drive=dead'))
await page.waitForTimeout(3000)
await app(page, () => window.understudy.app.view.setLayer('contacts', true))
await app(page, () => window.understudy.app.command('pause'))
await picture('walk-debug.png')
await app(page, () => window.understudy.app.command('fault k10 motor:front_left_drive=ok'))
await app(page, () => window.understudy.app.command('resume'))
await app(page, () => window.understudy.app.view.setLayer('contacts', false))
drive.kill('SIGINT')

// Nobody was in control while time stood. The hardware's battery is in again.
hardware.kill('SIGCONT')
await until(() => ask('switch', 'k10', '--to', 'proxy').status === 0, 'the proxy plays on')
await show('authority')
console.log(ask('switch', 'k10', '--to', 'hardware').stderr)
await said('the states differ')
await picture('walk-refused.png')
const match = ask('switch', 'k10', '--to', 'hardware', '--match')
if (match.status !== 0) throw new Error(match.stderr)
await browser.close()
await world.stop()
process.exit(0)
