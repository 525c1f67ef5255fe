// A joint's number by the slider and in the tree: of a driven joint it is the drive's target, and the joint goes there and stays, while time is paused at
// once; of a free one it is the position.
import { app, browse, check, open, pass, run, scene, show, test, until } from './support.mjs'

const world = await run([scene('default.xml'), '--set', 'motor_port=0'])
const browser = await browse()
const page = await open(browser, world.url, { viewport: { width: 900, height: 600 } })
const slider = page.getByTestId('joint-slider')
const joint = 'k10/front_left_steer'

async function select(name) {
  await app(page, (wanted) => {
    const a = window.understudy.app
    a.select({ kind: 'joint', index: a.world.joints.findIndex((j) => j.name === wanted) })
  }, name)
  await show(page, 'properties')
  await until(async () => (await page.getByTestId('properties-title').textContent()).includes(name.split('/')[1]), 'the joint is shown')
}
// Opens the joint in the tree and types a number.
async function edit(name, what, text) {
  await show(page, 'tree')
  await page.getByTestId('tree-search').fill(name.split('/')[1])
  const node = page.locator(`[data-testid="node-joint:${name}"]`)
  const row = page.locator(`[data-testid="edit-joint:${name}.${what}"]`)
  await node.waitFor({ state: 'visible' })
  if ((await node.getAttribute('aria-expanded')) !== 'true') await node.locator('.twist').click()
  check((await row.getAttribute('title')).includes('target position of the drive'), 'the row does not tell what it sets')
  await row.click()
  await page.getByTestId('tree-input').fill(text)
  await page.keyboard.press('Enter')
}
const position = (name) => app(page, (n) => window.understudy.app.value(`${n}.q`), name)

await test(
  [
    ['the slider of a driven joint moves it, and it stays', async () => {
      await select(joint)
      check((await slider.getAttribute('aria-label')) === 'target position', 'the slider is not the drive’s')
      await until(async () => (await position(joint)) !== undefined, 'its position is shown')
      check(Math.abs(await position(joint)) < 0.1, `it begins at ${await position(joint)}`)
      await slider.fill('0.4')
      await until(async () => Math.abs((await position(joint)) - 0.4) < 0.08, 'the joint is where the slider is')
      await pass(page, 2)
      const q = await position(joint)
      check(Math.abs(q - 0.4) < 0.08, `it sprang back to ${q}`)
      await page.screenshot({ path: 'slider.png' })
    }],
    ['the slider of a joint without a drive sets its position', async () => {
      const free = await app(page, () => {
        const w = window.understudy.app.world
        return w.joints.find((j, i) => j.n_q === 1 && !w.drives.some((d) => d.joint === i))?.name
      })
      check(free, 'the scene has no free joint')
      await select(free)
      check((await slider.getAttribute('aria-label')) === 'position', 'the slider is not the joint’s')
    }],
    ['the slider of a wheel sets a velocity', async () => {
      await select('k10/front_left_drive')
      check((await slider.getAttribute('aria-label')) === 'target velocity', 'the slider is not the drive’s velocity')
    }],
    ['the tree sets the target too, and the joint stays there', async () => {
      await edit(joint, 'position', '-0.3')
      await until(async () => Math.abs((await position(joint)) + 0.3) < 0.08, 'the joint is where the tree says')
      await pass(page, 2)
      const q = await position(joint)
      check(Math.abs(q + 0.3) < 0.08, `it sprang back to ${q}`)
      await page.screenshot({ path: 'tree.png' })
    }],
    ['while time is paused the joint is there at once, and stays when time goes on', async () => {
      await app(page, () => window.understudy.app.command('pause'))
      await until(() => app(page, () => window.understudy.app.status.paused), 'time is paused')
      await edit(joint, 'position', '0.2')
      await until(async () => Math.abs((await position(joint)) - 0.2) < 1e-6, 'the joint is there without a step')
      await select(joint)
      await slider.fill('0.25')
      await until(async () => Math.abs((await position(joint)) - 0.25) < 2e-3, 'the slider sets it too')
      await app(page, () => window.understudy.app.command('resume'))
      await pass(page, 2)
      const q = await position(joint)
      check(Math.abs(q - 0.25) < 0.08, `it went to ${q}`)
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
