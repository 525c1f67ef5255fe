// The default scene in a browser: it appears soon and moves; it is driven by key and by touch; a plot shows the joint that moved; an object is added and
// hit; a state is kept and gone back to.
import { createServer } from 'node:net'
import { app, browse, check, command, distance, moment, open, pass, place, run, scene, show, still, test, until } from './support.mjs'

// Another program has the port of the motors.
const other = createServer()
await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve))
const motorPort = other.address().port
const world = await run([scene('default.xml'), '--set', `motor_port=${motorPort}`])
other.close()
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const base = () => place(page, 'k10/base')

// Speed of the rover over half a second of simulated time, m/s.
async function speed() {
  const from = await moment(page, 'k10/base')
  const to = await until(async () => ((now) => now.time > from.time + 0.5 && now)(await moment(page, 'k10/base')), 'time goes on')
  return distance(from.p, to.p) / (to.time - from.time)
}

await test(
  [
    ['the first picture is there', async () => {
      console.log(`        first picture ${page.readyAfter.toFixed(0)} ms after opening`)
      const world = await app(page, () => ({ robots: window.understudy.app.world.groups.filter((g) => g.robot).length, shapes: window.understudy.app.world.shapes.length }))
      check(world.robots === 1 && world.shapes > 50, 'the world is not the default scene')
      await page.screenshot({ path: 'default.png' })
    }],
    ['the log names the port that the motors have instead of one that is taken', async () => {
      await show(page, 'log')
      const line = page.getByText(`motors of k10: port ${motorPort} is taken, port `)
      await line.first().waitFor({ state: 'visible' })
      check(new RegExp(`port ${motorPort} is taken, port \\d+ is used instead`).test(world.output), world.output)
    }],
    ['the rover drives its round by itself', async () => {
      check((await speed()) > 0.2, 'it stands')
    }],
    ['the soil panel has one full row per link that touches soil, and keeps its rows', async () => {
      await show(page, 'soil')
      await id('sunk').waitFor({ state: 'visible' })
      // For 3 s, at each status: links in it, rows, rows with an empty cell; and rows that were added meanwhile.
      const seen = await app(page, async () => {
        const { app } = window.understudy
        const table = document.querySelector('[data-testid=sunk]')
        const looks = []
        let added = 0
        const observer = new MutationObserver((list) => (added += list.reduce((n, change) => n + change.addedNodes.length, 0)))
        observer.observe(table, { childList: true })
        const end = performance.now() + 3000
        app.on('status', () => {
          if (performance.now() > end) return
          const links = [...new Set(app.status.sunk.map((one) => one.link))]
          const rows = [...table.rows].slice(1)
          const empty = rows.filter((row) => [...row.cells].some((cell) => cell.textContent === '')).length
          looks.push({ contacts: app.status.sunk.length, links, rows: rows.length, empty })
        })
        await new Promise((resolve) => setTimeout(resolve, 3000))
        observer.disconnect()
        return { looks, added }
      })
      const { looks, added } = seen
      check(looks.length >= 5, `only ${looks.length} statuses in 3 s`)
      check(looks.some((look) => look.contacts > look.links.length && look.links.length > 4), 'no link touches soil in several places: the scene tests nothing')
      const bad = looks.find((look) => look.rows !== look.links.length || look.empty > 0)
      check(!bad, `${bad?.links.length} links in soil, but ${bad?.rows} rows, ${bad?.empty} of them with an empty cell`)
      // A row is added when its link comes into the soil, as a wheel does that was lifted, and at no other time.
      const came = looks.slice(1).reduce((n, look, i) => n + look.links.filter((link) => !looks[i].links.includes(link)).length, 0)
      const first = 4 // wheels that came between the start of the watch and the first status
      check(added <= came + first, `${added} rows were added, for ${came} links that came into the soil`)
      await page.screenshot({ path: 'soil-panel.png' })
    }],
    ['it stops when told, and the drive panel moves it by key', async () => {
      await show(page, 'drive')
      await page.getByTestId('viewport').click({ position: { x: 300, y: 300 } })
      await page.keyboard.press('KeyS')
      await until(async () => (await speed()) < 0.02, 'it stops')
      const p0 = await base()
      await page.keyboard.down('KeyW')
      await until(async () => distance(p0, await base()) > 0.3, 'it drives while the key is held')
      await page.screenshot({ path: 'driven-by-key.png' })
      await page.keyboard.up('KeyW')
      await until(async () => (await speed()) < 0.02, 'it stops when the key is let go')
    }],
    ['a plot shows the joint that moved', async () => {
      await show(page, 'scope')
      await id('scope-add').fill('k10/front_left_drive.v')
      await id('scope-add').press('Enter')
      await page.getByTestId('viewport').click({ position: { x: 300, y: 200 } })
      await page.keyboard.down('KeyW')
      await until(async () => (await app(page, () => window.understudy.app.value('k10/front_left_drive.v'))) > 1, 'the wheel turns')
      // A page that is slow gets fewer pictures, and values come with them.
      await app(page, () => {
        window.heard = 0
        window.understudy.app.on('values', () => window.heard++)
      })
      await until(() => app(page, () => window.heard > 25), 'some values are plotted')
      await page.keyboard.up('KeyW')
      await until(async () => (await app(page, () => Math.abs(window.understudy.app.value('k10/front_left_drive.v')))) < 0.1, 'the wheel stands')
      // The exported numbers are what is plotted.
      const download = page.waitForEvent('download')
      await id('scope-csv').click()
      const path = await (await download).path()
      const { readFileSync } = await import('node:fs')
      const rows = readFileSync(path, 'utf8').trim().split('\n').slice(1).map((line) => line.split(',').map(Number))
      check(rows.length > 20, `only ${rows.length} rows`)
      check(Math.max(...rows.map((r) => r[1])) > 1, 'the curve does not rise')
      check(rows.every((r, i) => i === 0 || r[0] > rows[i - 1][0]), 'times do not rise')
      await page.screenshot({ path: 'scope.png' })
    }],
    ['an object is added in front of it and hit', async () => {
      // From the start, where the way is free; told to stand, it does not drive its round.
      await command(page, 'pause')
      await command(page, 'reset')
      await still(page, 0)
      await show(page, 'objects')
      const before = await app(page, () => window.understudy.app.world.epoch)
      await id('add-kind').selectOption('box')
      await id('add-name').fill('crate')
      // Wider than the rover's track: a narrow one would pass below it.
      await id('add-size-1').fill('1')
      await id('add').click()
      const isThere = (epoch) => ((w) => w.epoch > epoch && w.groups.some((g) => g.name === 'crate'))(window.understudy.app.world)
      await until(() => app(page, isThere, before), 'the crate is in the world')
      const name = await app(page, () => {
        const w = window.understudy.app.world
        return w.links[w.links.findIndex((l) => w.groups[l.group]?.name === 'crate')].name
      })
      await app(page, () => window.understudy.app.drive('k10', 0, 0, 0))
      // It falls, then lies: after four seconds it stays where it is.
      await command(page, 'step 4000')
      await still(page, 4000)
      const lies = await place(page, name)
      await command(page, 'step 100')
      await still(page, 4100)
      const later = await place(page, name)
      check(distance(lies, later) < 2e-4 && lies[2] < 5, `the crate is at ${lies}, a tenth of a second later at ${later}`)
      await page.screenshot({ path: 'added.png' })
      await command(page, 'resume')
      await page.getByTestId('viewport').click({ position: { x: 300, y: 200 } })
      await show(page, 'drive')
      await page.keyboard.down('KeyW')
      await until(async () => distance(lies, await place(page, name)) > 0.05, 'the rover pushes it')
      await page.keyboard.up('KeyW')
      await page.screenshot({ path: 'hit.png' })
    }],
    ['a state is kept, and gone back to', async () => {
      await show(page, 'time')
      await until(() => app(page, () => window.understudy.app.status?.paused === false), 'time goes on')
      await id('pause').click()
      await still(page)
      const tick = await app(page, () => window.understudy.app.status.tick)
      await id('snapshot-name').fill('here')
      await id('snapshot-save').click()
      await id('snapshot-here').waitFor({ state: 'visible' })
      const kept = await base()
      await id('pause').click()
      await page.getByTestId('viewport').click({ position: { x: 300, y: 200 } })
      await page.keyboard.down('KeyS')
      await until(async () => distance(kept, await base()) > 0.3, 'it has gone elsewhere')
      await page.keyboard.up('KeyS')
      await id('pause').click()
      await still(page)
      await id('restore-here').click()
      await until(async () => distance(kept, await base()) < 1e-5, 'it is back')
      await until(() => app(page, (t) => window.understudy.app.status.tick === t, tick), 'the tick is back')
      await page.screenshot({ path: 'restored.png' })
      await id('step-100').click()
      await until(() => app(page, (t) => window.understudy.app.status.tick === t + 100, tick), 'a hundred ticks are done')
      await id('pause').click()
    }],
    ['the console has no error', async () => {
      check(page.faults.length === 0, page.faults.join('\n'))
    }],
    ['a phone drives it by touch', async () => {
      const { devices } = (await import('node:module')).createRequire(`${process.env.US_NPM}/x.js`)('playwright-core')
      const phone = await open(browser, world.url, { ...devices['Pixel 7'], defaultBrowserType: undefined })
      await phone.getByTestId('tab-drive').tap()
      const stick = phone.getByTestId('drive-stick')
      await stick.waitFor({ state: 'visible' })
      const box = await stick.boundingBox()
      const x = box.x + box.width / 2
      const y = box.y + box.height / 2
      const at = (name) => place(phone, name)
      const p0 = await at('k10/base')
      const session = await phone.context().newCDPSession(phone)
      const touch = (type, points) => session.send('Input.dispatchTouchEvent', { type, touchPoints: points })
      await touch('touchStart', [{ x, y }])
      await touch('touchMove', [{ x, y: y + 40 }])
      await until(async () => distance(p0, await at('k10/base')) > 0.3, 'it drives backwards while the stick is held')
      await phone.screenshot({ path: 'phone.png' })
      await touch('touchEnd', [])
      check(phone.faults.length === 0, phone.faults.join('\n'))
      await phone.context().close()
    }],
    ['it goes on drawing', async () => {
      await pass(page, 3)
      const fps = await app(page, () => window.understudy.app.view.fps)
      console.log(`        ${fps.toFixed(1)} frames/s`)
      check(fps > 0, 'nothing is drawn')
    }],
  ],
  async () => {
    await browser.close()
    await world.stop()
  },
)
