// Ground in a browser: tiles as fine as they are looked at and no more than there is room for, ruts where the rover has been, the panel of soil and
// regions, and a photograph that lies on the ground.
import { join } from 'node:path'
import { app, browse, check, command, open, run, scene, show, still, test, until } from './support.mjs'

const world = await run([join(process.env.US_SOURCE_DIR, 'tests', 'browser', 'soil.xml')])
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const count = (on = page) =>
  app(on, () => {
    const { cameras, bodies } = window.understudy.app.view
    return { ...bodies.fields[0].count, isThere: cameras.glide.left === 0 }
  })
// Waits until the camera has come to where it glides, and all tiles that are wanted there.
const settled = (on, what, isGood = () => true) =>
  until(async () => ((c) => c.isThere && c.missing === 0 && c.shown > 0 && isGood(c) && c)(await count(on)), what)
const ruts = () => app(page, () => window.understudy.app.view.bodies.ruts[0]?.count ?? { touched: 0, shown: 0, missing: 0 })
const look = (point, distance) =>
  app(page, ([p, d]) => {
    window.understudy.app.view.setCamera('orbit')
    window.understudy.app.view.lookAt(p, d)
  }, [point, distance])
const soil = (name, key) => app(page, ([n, k]) => window.understudy.app.soils.find((s) => s.name === n).values[k], [name, key])

await test(
  [
    ['the ground comes in tiles, finer the nearer one looks', async () => {
      console.log(`        first picture ${page.readyAfter.toFixed(0)} ms after opening`)
      // From 400 m the 30 m of ground are a few pixels wide, from 1 m each sample is.
      await look([5, 5, 0], 400)
      const far = await settled(page, 'one tile is enough from far away', (c) => c.shown === 1)
      await look([5, 5, 0], 1)
      const near = await settled(page, 'the finest tiles come', (c) => c.finest === 0)
      console.log(`        ${far.shown} tile from far away, of level ${far.finest}; ${near.shown} from near by`)
      check(near.shown > 4, `only ${near.shown} tiles`)
      await page.screenshot({ path: 'near.png' })
    }],
    ['regions are tinted by what they are made of, with a legend', async () => {
      await command(page, 'pause') // until there are to be ruts: how many does not go by how long this takes
      await look([-6, 1, 0], 14)
      await settled(page, 'the tiles there come')
      // Colours of the screen with and without the layer, in the region and beside it: means of 5 x 5 pixels.
      const colours = () =>
        app(page, () => {
          const { view } = window.understudy.app
          const gl = view.renderer.getContext()
          const at = (x, y) => {
            const p = view.camera.position.clone().set(x, y, 0.05).project(view.camera)
            const size = [gl.drawingBufferWidth, gl.drawingBufferHeight]
            const pixels = new Uint8Array(100)
            gl.readPixels(Math.round((size[0] * (p.x + 1)) / 2) - 2, Math.round((size[1] * (p.y + 1)) / 2) - 2, 5, 5, gl.RGBA, gl.UNSIGNED_BYTE, pixels)
            return [0, 1, 2].map((c) => pixels.reduce((sum, value, k) => (k % 4 === c ? sum + value / 25 : sum), 0))
          }
          return [true, false].map((on) => {
            view.setLayer('regions', on)
            view.renderer.render(view.scene, view.camera)
            return { north: at(-6, 5), south: at(-6, -2) }
          })
        })
      const [tinted, bare] = await colours()
      const change = (a, b) => Math.max(...a.map((value, c) => Math.abs(value - b[c])))
      const told = `tinted ${JSON.stringify(tinted)}, without ${JSON.stringify(bare)}`
      check(change(tinted.north, bare.north) > 8, `the region looks like the ground: ${told}`)
      check(change(tinted.south, bare.south) < 1, `the ground beside it has changed: ${told}`)
      check(!(await id('legend-regions').isVisible()), 'the legend stays without the layer')
      await app(page, () => window.understudy.app.view.setLayer('regions', true))
      await id('legend-regions').waitFor({ state: 'visible' })
      check((await id('legend-regions').innerText()) === 'crust', `the legend says ${await id('legend-regions').innerText()}`)
      await page.screenshot({ path: 'regions.png' })
    }],
    ['tiles that are out of sight are let go of', async () => {
      for (let i = 0; i < 6; i++) {
        await look([12 * Math.cos(2 * i), 12 * Math.sin(2 * i), 1], 1.5)
        await settled(page, 'the tiles there come')
      }
      // 9000 triangles in sight are drawn in software, 768 of a tile; four times as many tiles and 32 more are kept. All levels together have 139.
      await settled(page, 'no more tiles are kept', (c) => c.kept <= 4 * Math.ceil(9000 / 768) + 32)
    }],
    ['wheels leave ruts', async () => {
      await command(page, 'resume')
      await app(page, () => window.understudy.app.view.setCamera('follow'))
      const depth = () => app(page, () => Math.min(0, ...[...window.understudy.app.ruts.values()].map((r) => r.unit * Math.min(...r.change))))
      await until(async () => (await depth()) < -0.005, 'they are deeper than 5 mm')
      await command(page, 'pause')
      await still(page)
      await until(async () => ((c) => c.shown > 0 && c.missing === 0)(await ruts()), 'all of them are drawn')
      // The ground is cut out where they are drawn, and nowhere else: squares of 16 columns, of tiles that have 4 each way.
      const cut = await app(page, () => {
        const bed = window.understudy.app.view.bodies.ruts[0]
        const ones = (bits) => [...bits.toString(2)].filter((bit) => bit === '1').length
        const drawn = [...bed.tiles.values()].filter((tile) => tile.mesh?.parent).reduce((n, tile) => n + ones(tile.bits), 0)
        return { squares: [...bed.mask.image.data].filter((v) => v > 0).length, drawn }
      })
      check(cut.squares === cut.drawn && cut.drawn > 0, `${cut.squares} squares are cut out, ${cut.drawn} are drawn`)
      await page.screenshot({ path: 'ruts.png' })
    }],
    ['they are lines from 10 m away', async () => {
      const from = await app(page, () => Array.from(window.understudy.app.poses.subarray(0, 3)))
      await look(from, 10)
      await until(async () => (await count()).isThere && ((c) => c.shown > 0 && c.missing === 0)(await ruts()), 'the camera is there')
      // Light of columns that are pressed by 3 mm and more, and of those that nothing has touched; both over all tiles that are drawn.
      const { coarsest, pressed, untouched } = await app(page, () => {
        const { bed, look, tiles } = window.understudy.app.view.bodies.ruts[0]
        const drawn = [...tiles.values()].filter((tile) => tile.mesh?.parent)
        const lights = { pressed: [], untouched: [] }
        for (const { rut, mesh } of drawn) {
          const colour = mesh.geometry.getAttribute('color')
          for (let j = 0; j < 64; j += look.step)
            for (let i = 0; i < 64; i += look.step) {
              const change = rut.unit * rut.change[64 * j + i]
              const list = change < -0.003 ? lights.pressed : change === 0 ? lights.untouched : null
              list?.push(colour.getY((j / look.step) * (64 / look.step + 1) + i / look.step))
            }
        }
        const mean = (list) => list.reduce((sum, value) => sum + value / list.length, 0)
        const coarsest = Math.max(...drawn.filter((tile) => tile.distance < 11).map((tile) => tile.stride)) * look.step * bed.spacing
        return { coarsest, pressed: mean(lights.pressed), untouched: mean(lights.untouched) }
      })
      // A wheel of the rover is 12 cm wide: with lines farther apart than half of it a rut falls apart into blots.
      check(coarsest > 0 && coarsest < 0.06, `lines are ${coarsest} m apart`)
      check(pressed < 0.93 * untouched, `pressed soil has a light of ${pressed}, untouched soil ${untouched}`)
      await page.screenshot({ path: 'ruts-far.png' })
    }],
    ['they go with the past', async () => {
      await command(page, 'reset')
      await until(() => app(page, () => [...window.understudy.app.ruts.values()].every((r) => r.unit === 0)), 'the bed is as it was')
      await command(page, 'resume')
    }],
    ['the panel shows soils, and a slider changes one', async () => {
      await id('tab-soil').click()
      await id('panel-soil').waitFor({ state: 'visible' })
      await id('soil-sand').locator('summary').click()
      const before = await soil('sand', 'cohesion')
      const slider = id('slider-sand-cohesion')
      await slider.focus()
      for (let i = 0; i < 5; i++) await slider.press('ArrowRight')
      await until(async () => (await soil('sand', 'cohesion')) > before + 100, 'the simulator has it')
      await id('soil-sand-friction_angle').fill('30°')
      await id('soil-sand-friction_angle').press('Enter')
      await until(async () => Math.abs((await soil('sand', 'friction_angle')) - Math.PI / 6) < 1e-6, 'a number that is typed counts too')
      await page.screenshot({ path: 'panel-soil.png' })
    }],
    ['each wheel has a row with how deep it stands', async () => {
      await id('soil-sand').locator('summary').click()
      const rows = page.locator('[data-testid^="sunk-"]')
      await until(async () => (await rows.count()) === 4, 'four wheels stand in the sand')
      await until(async () => /\d/.test(await rows.first().textContent()), 'with numbers')
      await page.screenshot({ path: 'panel-soil-wheels.png' })
    }],
    ['how deep a wheel is can be plotted', async () => {
      const name = 'k10/front_left_wheel.sinkage'
      await show(page, 'scope')
      await page.getByTestId('scope-add').fill(name)
      await page.getByTestId('scope-add').press('Enter')
      await until(() => app(page, (n) => window.understudy.app.value(n) > 0.001, name), 'its value comes')
    }],
    ['a softer soil lets the wheels sink deeper', async () => {
      // The mean over the wheels.
      const sinkage = () =>
        app(page, () => {
          const wheels = window.understudy.app.status.sunk.filter((one) => one.wheel)
          return wheels.reduce((sum, one) => sum + one.sinkage / wheels.length, 0)
        })
      const before = await until(sinkage, 'four wheels stand in the soil')
      await id('soil-sand').locator('summary').click()
      const slider = id('slider-sand-kphi')
      await slider.focus()
      const stiff = await soil('sand', 'kphi')
      // Each press is a tenth of the way, a factor of 2.5.
      for (let i = 0; i < 3; i++) await slider.press('PageDown')
      await until(async () => (await soil('sand', 'kphi')) < stiff / 10, 'the simulator has a tenth of the stiffness')
      await until(async () => (await sinkage()) > 1.5 * before, 'the wheels are half as deep again')
      await id('soil-sand').locator('summary').click()
    }],
    ['a region is made of something else, and what stands in it feels that', async () => {
      const region = () => app(page, () => window.understudy.app.regions.find((r) => r.name === 'north').material)
      const under = () =>
        app(page, () => {
          const { status, world } = window.understudy.app
          return [...new Set(status.sunk.filter((one) => one.wheel).map((one) => world.materials[one.soil]?.name))].join()
        })
      check((await region()) === 'crust', `it is made of ${await region()}`)
      await command(page, 'move k10 0 7 0.6')
      await until(async () => (await under()) === 'crust', 'the wheels stand in the crust')
      await id('region-north').selectOption('sand')
      await until(async () => (await region()) === 'sand', 'the simulator has it')
      await until(async () => (await under()) === 'sand', 'the wheels stand in sand')
      // It is made of the ground's own material now, and looks like it.
      await id('legend-regions').waitFor({ state: 'hidden' })
      await until(
        () =>
          app(page, () => {
            const { canvas } = window.understudy.app.view.bodies.regions[0]
            return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.every((value) => value === 0)
          }),
        'the region has no colour',
      )
    }],
    ['the console has no error', async () => {
      check(page.faults.length === 0, page.faults.join('\n'))
    }],
    ['a photograph lies on the ground, and a region by its mask', async () => {
      // As a site with layers of colours and regions would give them: stripes to the north; the region in the quarter of least x and y.
      const context = await browser.newContext({ viewport: { width: 900, height: 600 } })
      const photo = Buffer.alloc(128 * 128 * 4, 255)
      for (let k = 0; k < 128 * 128; k++) photo.set((k >> 4) % 2 ? [200, 120, 60] : [90, 70, 60], 4 * k)
      await context.route('**/api/world', async (route) => {
        const answer = await route.fetch()
        const told = await answer.json()
        told.shapes.find((s) => s.ground).ground.photo = true
        const mask = { path: '/api/asset/1/region/0.mask', nx: 2, ny: 2 }
        told.regions = [{ name: 'quarter', shape: told.regions[0].shape, material: 'crust', min: [-10, -10], max: [10, 10], mask }]
        await route.fulfill({ response: answer, json: told })
      })
      await context.route('**/*.photo', (route) => route.fulfill({ body: route.request().url().includes('/bed/') ? photo.subarray(0, 64 * 64 * 4) : photo }))
      await context.route('**/region/0.mask', (route) => route.fulfill({ body: Buffer.from([255, 0, 0, 0]) }))
      const other = await context.newPage()
      const faults = []
      other.on('pageerror', (error) => faults.push(error.message))
      await other.goto(world.url)
      await other.waitForSelector('html[data-ready="1"]', { state: 'attached', timeout: 30000 })
      await settled(other, 'its tiles come')
      await other.screenshot({ path: 'photograph.png' })
      const isTextured = await app(other, () => window.understudy.app.view.bodies.fields[0].object.children.every((mesh) => mesh.userData.photo))
      check(isTextured, 'a tile has no photograph')
      // From above, north at the top: a picture's first row is its upper one.
      const quarters = () =>
        app(other, () => {
          const { canvas } = window.understudy.app.view.bodies.regions[0]
          const alpha = (x, y) => canvas.getContext('2d').getImageData(x * canvas.width, y * canvas.height, 1, 1).data[3]
          return [alpha(0.25, 0.75), alpha(0.75, 0.75), alpha(0.25, 0.25), alpha(0.75, 0.25)].join()
        })
      await until(async () => (await quarters()) === '255,0,0,0', 'the region lies in its quarter')
      check(faults.length === 0, faults.join('\n'))
      await context.close()
    }],
    ['a scene without soil has no such panel', async () => {
      const hard = await run([scene('slope.xml')])
      const other = await open(browser, hard.url)
      await other.getByTestId('tab-materials').waitFor({ state: 'visible' })
      await until(() => app(other, () => window.understudy.app.pairs.length > 0), 'the materials are told')
      check(!(await other.getByTestId('tab-soil').isVisible()), 'it is offered')
      await other.context().close()
      await hard.stop()
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
