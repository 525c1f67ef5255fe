// The joint slider: of a driven joint it sets the drive's target, and the joint goes there and stays; of a free one it sets the position.
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
const position = (name) => app(page, (n) => window.understudy.app.value(`${n}.q`), name)

await test(
  [
    ['the slider of a driven joint moves it, and it stays', async () => {
      await select(joint)
      check((await slider.getAttribute('aria-label')) === 'Target of the drive', 'the slider is not the drive’s')
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
      check((await slider.getAttribute('aria-label')) === 'Position of the joint', 'the slider is not the joint’s')
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
