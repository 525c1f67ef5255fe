// Sensors on the page: readings and parameters in the panel, a reading on the scope, cones in the view, and faults by buttons.
import { app, browse, check, open, run, scene, show, test, until } from './support.mjs'

const world = await run([scene('instruments.xml')])
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const shown = (name) => id(name).innerText()
const faults = () => app(page, () => window.understudy.app.status?.robots[0].faults.map((f) => f.what) ?? [])

await test(
  [
    ['a sensor that is opened says what it reads', async () => {
      await show(page, 'sensors')
      await id('sensor-open-k10/laser').click()
      await until(async () => /^\d/.test(await shown('reading-k10/laser.range')), 'a range')
      const range = Number(await shown('reading-k10/laser.range'))
      // The rock stands some 3 m ahead of the rover at the start, and the rover drives towards it.
      check(range > 0.1 && range < 5, `the range is ${range} m`)
    }],
    ['a parameter is changed while it runs', async () => {
      const field = id('parameter-k10/laser.noise')
      await until(async () => (await field.inputValue()) === '0.003', 'the deviation of the preset')
      await field.fill('0.5')
      await field.press('Enter')
      await until(async () => (await app(page, () => window.understudy.app.value('k10/laser.set.noise'))) === 0.5, 'it is changed')
      // Ranges scatter by as much now: of two that follow each other the difference is more than 5 cm more often than not.
      const last = () => app(page, () => window.understudy.app.value('k10/laser.range'))
      let before = await last()
      await until(async () => {
        const now = await last()
        const isFar = Math.abs(now - before) > 0.05
        before = now
        return isFar
      }, 'readings scatter')
    }],
    ['a choice is changed too', async () => {
      await id('parameter-k10/laser.waves').selectOption('ultrasound')
      await until(async () => (await app(page, () => window.understudy.app.value('k10/laser.set.waves'))) === 0, 'it is ultrasound')
    }],
    ['a reading goes on to the scope', async () => {
      await id('sensor-plot-k10/laser.range').click()
      await until(() => app(page, () => window.understudy.app.watched.includes('k10/laser.range')), 'the scope watches it')
      await show(page, 'scope')
      await until(async () => (await shown('scope')).includes('k10/laser.range'), 'it is on the scope')
    }],
    ['cones are drawn', async () => {
      await app(page, () => window.understudy.app.view.setLayer('sensors', true))
      await page.screenshot({ path: 'sensors.png' })
    }],
    ['any sensor fails by buttons and is mended', async () => {
      await show(page, 'faults')
      await id('fault-part-sensor').click()
      await id('fault-sensor:navsat-dead').click()
      await until(async () => (await faults()).includes('sensor:navsat=dead'), 'satellite navigation is dead')
      await id('fault-sensor-delayed-number').fill('0.1')
      await id('fault-sensor:laser-delayed').click()
      await until(async () => (await faults()).includes('sensor:laser=delayed:0.1'), 'the range comes late')
      await id('fault-sensor:navsat-ok').click()
      await until(async () => !(await faults()).includes('sensor:navsat=dead'), 'it is mended')
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
