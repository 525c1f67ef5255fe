// The pictures of docs/page.md: node docs/plots/page.mjs, with the environment of tests/browser/support.mjs and the current directory docs/images.
import { app, browse, open, place, run, scene, until } from '../../tests/browser/support.mjs'

const browser = await browse()
const wide = { viewport: { width: 1280, height: 760 }, colorScheme: 'dark' }
const after = (page, seconds) => until(() => app(page, (t) => window.understudy.app.time > t, seconds), `t = ${seconds} s`, 60)
const show = async (page, ...names) => {
  const tabs = await page.locator('[data-testid^="tab-"]').evaluateAll((list) => list.map((e) => e.dataset.testid.slice(4)))
  for (const name of tabs) {
    const is = await page.getByTestId(`panel-${name}`).isVisible()
    if (is !== names.includes(name)) await page.getByTestId(`tab-${name}`).click()
  }
}
const layer = (page, ...names) => app(page, (list) => list.forEach((name) => window.understudy.app.view.setLayer(name, true)), names)
// Time stands while the picture is drawn as well as it can be.
async function picture(page, path) {
  await app(page, () => window.understudy.app.command('pause'))
  await page.waitForTimeout(5000)
  await page.screenshot({ path })
  await app(page, () => window.understudy.app.command('resume'))
}

// Each panel alone.
async function panels() {
  const world = await run([scene('default.xml'), '--set', 'motor_port=0'])
  const page = await open(browser, world.url, { ...wide, viewport: { width: 1100, height: 900 } })
  await app(page, () => {
    const a = window.understudy.app
    a.select({ kind: 'link', index: a.world.links.findIndex((l) => l.name === 'stone3/stone') })
    void a.command('snapshot start')
    void a.command('record panels.mcap')
    void a.command('move nobody 1 2 3').catch(() => {})
  })
  for (const name of ['tree', 'properties', 'time', 'network', 'record', 'log']) {
    await show(page, name)
    await page.waitForTimeout(1500)
    if (name === 'tree') await page.getByTestId('tree-search').fill('front_left')
    await page.waitForTimeout(1000)
    await page.getByTestId(`panel-${name}`).screenshot({ path: `panel-${name}.png` })
  }
  await world.stop()
}
await panels()

// Faults that have come, and those in store: the upper end of the panel.
async function faults() {
  const world = await run([scene('faults.xml')])
  const page = await open(browser, world.url, { ...wide, viewport: { width: 1100, height: 1150 } })
  await show(page, 'faults')
  await after(page, 9.5)
  await app(page, () => window.understudy.app.command('pause'))
  await page.waitForTimeout(1500)
  const { x, y, width } = await page.getByTestId('panel-faults').boundingBox()
  await page.screenshot({ path: 'panel-faults.png', clip: { x, y, width, height: 1150 - y } })
  await world.stop()
}
await faults()

// A turn of a lidar from behind and above, with the panel of sensors.
async function lidar() {
  const world = await run([scene('lidar.xml')])
  const page = await open(browser, world.url + '?quality=high', wide)
  await show(page, 'sensors')
  await layer(page, 'shadows')
  await app(page, () => window.understudy.app.view.lookAt([0.5, 0, 0.5], 9))
  await after(page, 2)
  await picture(page, 'page-lidar.png')
  await world.stop()
}
await lidar()

let world = await run([scene('default.xml'), '--set', 'motor_port=0'])
let page = await open(browser, world.url + '?quality=high', wide)
await show(page, 'drive', 'tree')
await layer(page, 'shadows', 'contacts')
await after(page, 6)
await picture(page, 'page.png')
await show(page, 'scope', 'time')
await layer(page, 'torques')
for (const name of ['k10/front_left_drive.v', 'k10/rear_left_drive.v']) {
  await page.getByTestId('scope-add').fill(name)
  await page.getByTestId('scope-add').press('Enter')
}
await after(page, 18)
await picture(page, 'page-scope.png')
await show(page, 'objects')
await page.getByTestId('add-name').fill('crate')
await page.getByTestId('add-size-1').fill('1')
await page.getByTestId('add').click()
await page.waitForTimeout(2000)
await picture(page, 'page-objects.png')
await page.context().close()
const phone = await open(browser, world.url, { viewport: { width: 390, height: 780 }, deviceScaleFactor: 1.5, hasTouch: true, isMobile: true, colorScheme: 'dark' })
await phone.getByTestId('tab-drive').tap()
await picture(phone, 'page-phone.png')
await world.stop()

world = await run([scene('slope.xml')])
page = await open(browser, world.url + '?quality=high', wide)
await show(page, 'materials')
await layer(page, 'shadows', 'contacts')
await page.locator('summary').first().click()
await after(page, 2)
const from = await place(page, 'k10/base')
await app(page, () => window.understudy.app.command('pair rubber soil static-friction=0.45 kinetic-friction=0.45'))
await until(async () => (await place(page, 'k10/base'))[0] < from[0] - 1, 'it slides')
await picture(page, 'page-slope.png')
await world.stop()
await browser.close()
