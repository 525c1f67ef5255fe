// A lidar on the page: its points lie on what stands in the scene, the panel tells of them, and without the layer none are sent.
import { app, browse, check, open, run, scene, show, test, until } from './support.mjs'

const world = await run([scene('lidar.xml')])
const browser = await browse()
const page = await open(browser, world.url)

// Keeps what comes, as places in the world.
await app(page, () => {
  const { app } = window.understudy
  window.clouds = []
  app.on('cloud', (c) => {
    const at = []
    for (let i = 0; i < c.n; i++) at.push([0, 1, 2].map((k) => c.points[4 * i + k] * c.unit + c.origin[k]))
    window.clouds.push({ time: c.time, n: c.n, unit: c.unit, origin: c.origin, at })
    if (window.clouds.length > 3) window.clouds.shift()
  })
})
const newest = () => app(page, () => window.clouds.at(-1))

await test(
  [
    ['points lie on the dome and the ground, within the range', async () => {
      const cloud = await until(newest, 'a cloud has come')
      check(cloud.n > 2000 && cloud.n <= 40000, `${cloud.n} points`)
      // The dome of scenes/lidar.xml: a sphere of 0.8 m about (5, 1, 0.2). Noise along the beam is 2 cm: five deviations and the rounding.
      const far = cloud.at.map((p) => Math.hypot(...p.map((x, k) => x - cloud.origin[k])))
      check(Math.max(...far) < 100.3, `a point is ${Math.max(...far)} m away`)
      const dome = cloud.at.filter((p) => Math.hypot(p[0] - 5, p[1] - 1) < 0.7 && p[2] > 0.4)
      check(dome.length > 5, `${dome.length} points on the dome`)
      for (const p of dome) {
        const r = Math.hypot(p[0] - 5, p[1] - 1, p[2] - 0.2)
        check(Math.abs(r - 0.8) < 0.1 + cloud.unit, `a point of the dome is ${r} m from its middle`)
      }
      const below = cloud.at.filter((p) => p[2] < -1.5).length
      check(below === 0, `${below} points lie below the ground`)
    }],
    ['turns follow each other and the panel tells of them', async () => {
      const first = (await newest()).time
      await until(async () => (await newest()).time > first + 0.15, 'two more turns')
      await page.getByTestId('tab-sensors').click()
      await until(async () => /^\d+ points, .* s old$/.test(await page.getByTestId('sensor-k10/lidar').innerText()), 'the panel tells of points')
      await page.getByTestId('cloud-color').selectOption('ring')
      await app(page, () => window.understudy.app.view.setLayer('sensors', true))
      await page.screenshot({ path: 'lidar.png' })
    }],
    ['who asks for fewer points gets fewer', async () => {
      await app(page, () => window.understudy.app.wantPoints(500))
      const few = await until(async () => {
        const cloud = await newest()
        return cloud.n <= 500 && cloud
      }, 'a cloud of at most 500 points')
      check(few.n > 100, `${few.n} points`)
    }],
    ['without the layer nothing is sent, and with it there is more', async () => {
      await app(page, () => window.understudy.app.view.setLayer('lidar', false))
      const quiet = () => app(page, async () => {
        const n = window.clouds.at(-1).time
        const end = window.understudy.app.time + 1
        while (window.understudy.app.time < end) await new Promise((resolve) => setTimeout(resolve, 50))
        return window.clouds.at(-1).time === n
      })
      await until(quiet, 'a second of the world without a cloud')
      const last = (await newest()).time
      await app(page, () => window.understudy.app.view.setLayer('lidar', true))
      await until(async () => (await newest()).time > last, 'clouds come again')
    }],
    ['buttons let its beams fail', async () => {
      await show(page, 'faults')
      await page.getByTestId('fault-part-lidar').click()
      await page.getByTestId('fault-lidar-beams-number').fill('0, 15')
      await page.getByTestId('fault-lidar:lidar-beams').click()
      const has = () => app(page, () => window.understudy.app.status.robots[0].faults.some((f) => f.what === 'lidar=beams:0,15'))
      await until(has, 'beams are lost')
      await page.getByTestId('fault-lidar:lidar-ok').click()
    }],
    ['a lidar that is dead has no points left', async () => {
      await show(page, 'sensors')
      await app(page, () => window.understudy.app.command('fault k10 lidar=dead'))
      await until(async () => (await page.getByTestId('sensor-k10/lidar').innerText()) === 'nothing yet', 'its points are gone')
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
