// Real ground in a browser: an elevation model of Mars, imported as a site, with a rover and a ball on it. Its tiles are drawn, all of it can be
// looked at, what is picked is where the simulator has the ground, and the eye stays above it.
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { app, browse, check, command, open, place, run, still, test, until } from './support.mjs'

const source = process.env.US_SOURCE_DIR
const raster = join(source, '..', 'shared', 'data', 'terrain', 'mmgis_missionDEM.tif')
if (!existsSync(raster)) {
  console.log(`skipped: ${raster} is not there`)
  process.exit(0)
}
rmSync('site', { recursive: true, force: true })
execFileSync(process.env.US_PROGRAM, ['terrain', 'import', raster, '-o', 'site'], { stdio: ['ignore', 'ignore', 'inherit'] })
writeFileSync(
  'site.xml',
  `<scene name="site" version="1">
     <world step="1 ms"><shape name="ground" type="height-field" file="site/" surface="soil" rgba="0.62 0.45 0.33 1"/></world>
     <material name="soil"/>
     <object name="ball" xyz="0 0 -3"><link name="ball" density="800"><shape type="sphere" size="0.3" surface="soil"/></link></object>
     <robot name="k10" file="${source}/models/k10.urdf" base="floating" xyz="6 4 -3"/>
   </scene>`,
)
const world = await run(['site.xml'])
const browser = await browse()
const page = await open(browser, world.url)
const count = () =>
  app(page, () => {
    const { cameras, bodies } = window.understudy.app.view
    return { ...bodies.fields[0].count, isThere: cameras.glide.left === 0 }
  })
const settled = (what, isGood = () => true) =>
  until(async () => ((c) => c.isThere && c.missing === 0 && c.shown > 0 && isGood(c) && c)(await count()), what)
const look = (target, eye) =>
  app(page, ([to, from]) => {
    const { view } = window.understudy.app
    view.setCamera('orbit')
    view.lookAt(to)
    view.cameras.glide.position.set(...from)
  }, [target, eye])
// Where a ray through the middle of the picture meets the world.
const middle = () =>
  app(page, () => {
    const { view } = window.understudy.app
    return view.pick(view.canvas.clientWidth / 2, view.canvas.clientHeight / 2)
  })

await test(
  [
    ['the site comes in tiles', async () => {
      const ground = await app(page, () => window.understudy.app.world.shapes.find((s) => s.ground))
      const { nx, ny } = ground
      check(nx === 348 && ny === 337 && ground.ground.levels === 5, `${nx} x ${ny} samples in ${ground.ground.levels} levels`)
      const near = await settled('the finest come where the rover is', (c) => c.finest === 0)
      check(near.shown > 4, `only ${near.shown} tiles`)
      await page.screenshot({ path: 'near.png' })
    }],
    ['all of it is seen from above', async () => {
      // 347 m by 336 m from 500 m above: there is ground in the picture near each corner.
      await look([0, 0, 0], [0, -1, 500])
      await settled('tiles are there')
      const corners = await app(page, () => {
        const { view, world } = window.understudy.app
        const { nx, ny, size } = world.shapes.find((s) => s.ground)
        return [[-1, -1], [1, -1], [-1, 1], [1, 1]].map(([x, y]) => {
          const p = view.camera.position.clone().set(0.45 * x * (nx - 1) * size[0], 0.45 * y * (ny - 1) * size[1], 0).project(view.camera)
          return view.pick(((1 + p.x) / 2) * view.canvas.clientWidth, ((1 - p.y) / 2) * view.canvas.clientHeight)
        })
      })
      check(corners.every((c) => c && c.link === -1 && c.point[2] > -17.7 && c.point[2] < 17.2), `picked ${JSON.stringify(corners)}`)
      await page.screenshot({ path: 'overview.png' })
    }],
    ['what is picked is as high as the ground is for the simulator', async () => {
      // A ball that lies still touches the ground at its radius below its middle, where the ground is level; here it rolls into a hollow.
      await until(async () => {
        const from = await app(page, () => window.understudy.app.time)
        const p0 = await place(page, 'ball/ball')
        await until(() => app(page, (t) => window.understudy.app.time > t + 0.5, from), 'time goes on')
        const p1 = await place(page, 'ball/ball')
        return Math.hypot(p1[0] - p0[0], p1[1] - p0[1], p1[2] - p0[2]) < 0.05
      }, 'the ball rolls slowly')
      await command(page, 'pause')
      await still(page)
      const ball = await place(page, 'ball/ball')
      // From straight above, a metre beside it, where the ball does not hide the ground.
      const at = [ball[0] + 1, ball[1], ball[2]]
      await look(at, [at[0], at[1] - 0.01, at[2] + 6])
      await settled('the finest tiles are there', (c) => c.finest === 0)
      const hit = await until(middle, 'the ground is hit')
      const truth = await app(page, ([x, y]) => {
        // As the simulator has it: triangles of samples 1 m apart, from the tile of the finest level.
        const { world } = window.understudy.app
        const shape = world.shapes.find((s) => s.ground)
        const fx = x / shape.size[0] + (shape.nx - 1) / 2
        const fy = y / shape.size[1] + (shape.ny - 1) / 2
        const [i, j] = [Math.floor(fx), Math.floor(fy)]
        const [u, v] = [Math.floor(i / 32), Math.floor(j / 32)]
        return fetch(`${shape.ground.tiles}/0/${u}_${v}.field`)
          .then((answer) => answer.arrayBuffer())
          .then((bytes) => {
            const z = new Float32Array(bytes)
            const h = (a, b) => z[(b - 32 * v + 3) * 39 + (a - 32 * u + 3)]
            const [a, b] = [fx - i, fy - j]
            const side = a > b ? h(i + 1, j) : h(i, j + 1)
            return h(i, j) + Math.max(a, b) * (side - h(i, j)) + Math.min(a, b) * (h(i + 1, j + 1) - side)
          })
      }, hit.point)
      // 32-bit floats of a picture whose ray begins 6 m away: micrometres; 1 mm is far below what a wrong tile would give.
      check(Math.abs(hit.point[2] - truth) < 1e-3, `picked ${hit.point[2]}, the ground is at ${truth}`)
      check(Math.abs(hit.point[2] - (ball[2] - 0.3)) < 1, `the ground is at ${hit.point[2]}, the ball at ${ball[2]}`)
    }],
    ['the eye stays above the ground', async () => {
      const ball = await place(page, 'ball/ball')
      await look(ball, [ball[0] - 5, ball[1], ball[2] - 10])
      await settled('the tiles are there', (c) => c.finest === 0)
      const eye = await app(page, () => window.understudy.app.view.camera.position.toArray())
      check(eye[2] > ball[2] - 5, `it is at ${eye[2]}, the ball at ${ball[2]}`)
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
