// A forest in a browser: ground, rocks and trees that the scene scatters are all there, drawn in few calls, and each can be picked.
import { app, browse, check, open, run, scene, test, until } from './support.mjs'

const world = await run([scene('forest.xml')])
const browser = await browse()
const page = await open(browser, world.url)
await until(() => app(page, () => ((c) => c.missing === 0 && c.shown > 0)(window.understudy.app.view.bodies.fields[0].count)), 'the ground is there')

await test(
  [
    ['every rock and tree is drawn', async () => {
      const told = await app(page, () => {
        const { world, view } = window.understudy.app
        const drawn = new Set(view.bodies.batches.flatMap((batch) => batch.leaves.map((leaf) => leaf.shape)))
        const all = world.shapes.map(({ surface, kind }, i) => ({ surface, kind, i }))
        const of = (surface, kind) => all.filter((s) => s.surface === surface && s.kind === kind)
        const [crowns, trunks, rocks] = [of('wood', 'cone'), of('wood', 'cylinder'), of('rock', 'convex')]
        const missing = [...crowns, ...trunks, ...rocks].filter((s) => !drawn.has(s.i)).length
        return { crowns: crowns.length, trunks: trunks.length, rocks: rocks.length, missing }
      })
      check(told.crowns >= 20 && told.crowns === told.trunks && told.rocks >= 100, JSON.stringify(told))
      check(told.missing === 0, `${told.missing} are not drawn`)
      await page.screenshot({ path: 'forest.png' })
    }],
    ['rocks that are like no other are drawn in one call', async () => {
      const calls = await app(page, () => window.understudy.app.view.renderer.info.render.calls)
      const { solids, batches } = await app(page, () => {
        const list = window.understudy.app.view.bodies.batches
        return { solids: list.reduce((n, batch) => n + batch.leaves.length, 0), batches: list.length }
      })
      console.log(`        ${solids} solids in ${batches} batches, ${calls} calls with the ground`)
      check(batches < 20, `${batches} batches for ${solids} solids`)
    }],
    ['a tree and a rock can be picked', async () => {
      for (const [surface, kind] of [['wood', 'cone'], ['rock', 'convex']]) {
        const answer = await app(page, ([wantedSurface, wantedKind]) => {
          const { world, view } = window.understudy.app
          const index = world.shapes.findIndex((shape) => shape.link === -1 && shape.surface === wantedSurface && shape.kind === wantedKind)
          // From above, where nothing stands between, through its middle.
          const [x, y, z] = world.shapes[index].p
          view.camera.position.set(x - 0.1, y, z + 12)
          view.camera.lookAt(x, y, z)
          const hit = view.pick(view.canvas.clientWidth / 2, view.canvas.clientHeight / 2)
          return { index, hit }
        }, [surface, kind])
        check(answer.hit?.shape === answer.index, `shape ${answer.index}, ${kind}, was looked at; hit ${JSON.stringify(answer.hit)}`)
      }
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
