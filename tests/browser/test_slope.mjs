// A rover on a slope of 30 degrees: with friction 0.8 it stands, and when the slider brings it down to 0.45 it slides back.
import { app, browse, check, distance, open, pass, place, run, scene, test, until } from './support.mjs'

const world = await run([scene('slope.xml')])
const browser = await browse()
const page = await open(browser, world.url)
const base = () => place(page, 'k10/base')

// Moves a slider as a hand does: by its keys, until it stands where it should, and the simulator has followed.
async function slide(slider, wanted) {
  const value = () => app(page, () => window.understudy.app.pairs.find((p) => [p.a, p.b].sort().join() === 'rubber,soil').values['static-friction'])
  await slider.focus()
  await until(
    async () => {
      const now = Number.parseFloat(await slider.getAttribute('aria-valuetext'))
      if (Math.abs(now - wanted) < 0.006) return true
      await slider.press(now > wanted ? 'ArrowLeft' : 'ArrowRight')
      return false
    },
    `the slider stands at ${wanted}`,
  )
  await until(async () => Math.abs((await value()) - wanted) < 0.006, `the simulator has a friction of ${wanted}`)
}

await test(
  [
    ['with 0.8 it stands', async () => {
      await until(() => app(page, () => window.understudy.app.time > 2), 'it has settled')
      const p0 = await base()
      await pass(page, 2)
      const moved = distance(p0, await base())
      check(moved < 1e-4, `it moved ${moved} m`)
      await page.screenshot({ path: 'holds.png' })
    }],
    ['a slider down to 0.45 makes it slide back', async () => {
      await page.getByTestId('tab-materials').click()
      const pair = page.getByTestId(/^pair-(rubber-soil|soil-rubber)$/)
      await pair.waitFor({ state: 'visible' })
      if (!(await pair.evaluate((e) => e.open))) await pair.locator('summary').click()
      const p0 = await base()
      await slide(page.getByTestId(/^slider-(rubber-soil|soil-rubber)-static-friction$/), 0.45)
      await until(async () => (await base())[0] < p0[0] - 0.5, 'it slides down')
      await page.screenshot({ path: 'slides.png' })
    }],
    ['the console has no error', async () => {
      check(page.faults.length === 0, page.faults.join('\n'))
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
