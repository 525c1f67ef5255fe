// The other panels, cameras and layers; and what is done on the page is recorded so that it runs again bit for bit.
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { app, browse, check, command, distance, open, pass, place, run, scene, show, test, until } from './support.mjs'

const FILE = 'page.mcap'
rmSync(FILE, { force: true })
let world = await run([scene('default.xml'), '--set', 'motor_port=0'])
const browser = await browse()
// Every layer at once, shadows too, is a lot to draw in software: a small window.
const page = await open(browser, world.url, { viewport: { width: 1000, height: 600 } })
const id = (name) => page.getByTestId(name)
const frames = () => app(page, () => performance.getEntriesByName('first-frame').length)

await test(
  [
    ['the tree finds a joint, shows its value and selects it', async () => {
      await show(page, 'tree')
      await id('tree-search').fill('front_left_steer')
      const node = page.locator('[data-testid="node-joint:k10/front_left_steer"]')
      await node.waitFor({ state: 'visible' })
      await node.click()
      await until(() => app(page, () => window.understudy.app.selection?.kind === 'joint'), 'the joint is selected')
      await show(page, 'properties')
      await until(async () => (await id('properties-title').textContent()).includes('front_left_steer'), 'the panel shows it')
      await page.screenshot({ path: 'tree.png' })
      await id('tree-search').fill('')
    }],
    ['every layer can be drawn', async () => {
      const layers = await app(page, () => window.understudy.app.view.layers().map((l) => l.id))
      check(layers.length >= 9, `only ${layers.length} layers`)
      await id('layers-menu').click()
      for (const layer of layers) {
        const box = id(`layer-${layer}`)
        if (!(await box.isChecked())) await box.click()
      }
      check(await app(page, () => window.understudy.app.view.layers().every((l) => l.on)), 'a layer stays off')
      await page.keyboard.press('Escape')
      await pass(page, 1.5)
      await page.screenshot({ path: 'layers.png' })
      await app(page, () => window.understudy.app.view.layers().forEach((l) => window.understudy.app.view.setLayer(l.id, ['paths', 'grid'].includes(l.id))))
    }],
    ['the camera follows, and rides on board', async () => {
      for (const mode of ['onboard', 'follow', 'orbit']) {
        await id('camera-menu').click()
        await id(`camera-${mode}`).click()
        await until(() => app(page, (wanted) => window.understudy.app.view.cameraMode === wanted, mode), `the camera is ${mode}`)
        await page.keyboard.press('Escape')
        await pass(page, 0.5)
        await page.screenshot({ path: `camera-${mode}.png` })
      }
    }],
    ['the network panel has the robot’s topics with their rates', async () => {
      await show(page, 'network')
      const row = page.locator('[data-testid="topic-/k10/odom"]')
      await row.waitFor({ state: 'visible' })
      await until(async () => /\d/.test(await row.textContent()), 'a rate is measured')
      await page.screenshot({ path: 'network.png' })
    }],
    ['what is done while recording runs again bit for bit', async () => {
      await show(page, 'record')
      await id('record-name').fill('page')
      await id('record-start').click()
      await until(() => app(page, () => window.understudy.app.status?.recording), 'it records')
      await command(page, 'pair rubber soil static-friction=0.5 kinetic-friction=0.4')
      await command(page, 'add sphere marble size=0.2 at=0,0,1 density=500 surface=rock')
      await show(page, 'drive')
      await id('viewport').click({ position: { x: 200, y: 120 } })
      const p0 = await place(page, 'k10/base')
      await page.keyboard.down('KeyW')
      await until(async () => distance(p0, await place(page, 'k10/base')) > 0.5, 'it drives')
      await page.keyboard.up('KeyW')
      await command(page, 'remove marble')
      await command(page, 'raise stone1 0.3')
      await pass(page, 0.5)
      await show(page, 'record')
      await id('record-stop').click()
      await until(() => app(page, () => window.understudy.app.status?.recording === null), 'it ends')
      check(existsSync(FILE), `${FILE} is not there`)
      const replay = spawnSync(process.env.US_PROGRAM, ['replay', FILE, '--verify', '--trust'], { encoding: 'utf8', timeout: 60000 })
      check(replay.status === 0, `replay --verify: ${replay.status}\n${replay.stdout}${replay.stderr}`)
      console.log(`        ${replay.stdout.trim().split('\n').pop()}`)
    }],
    ['a command that cannot be is refused with the reason, here and in the log', async () => {
      const why = await app(page, () => window.understudy.app.command('move nobody 1 2 3').then(() => null, (error) => error.message))
      check(why && why.includes('nobody'), `the reason is ${why}`)
      await show(page, 'log')
      await until(async () => (await id('log').textContent()).includes('nobody'), 'the log has it')
    }],
    ['the console has no error', async () => {
      check(page.faults.length === 0, page.faults.join('\n'))
    }],
    ['the page says that the simulator is gone, and goes on with the next one', async () => {
      const port = new URL(world.url).port
      await world.stop()
      await until(() => app(page, () => !window.understudy.app.connected), 'it notices')
      await page.screenshot({ path: 'gone.png' })
      world = await run([scene('slope.xml'), '--port', port])
      await until(() => app(page, () => window.understudy.app.connected && window.understudy.app.world?.name === 'slope'), 'it shows the other world', 30)
      check((await frames()) === 1, 'the page was loaded anew')
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
