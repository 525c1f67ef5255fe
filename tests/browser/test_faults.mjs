// The panel of faults: what the scene has in store comes by itself, buttons let parts fail and mend them, and a recording of it runs again.
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { app, browse, check, open, pass, run, scene, test, until } from './support.mjs'

const FILE = 'faults.mcap'
rmSync(FILE, { force: true })
const world = await run([scene('faults.xml')])
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const faults = () => app(page, () => window.understudy.app.status?.robots[0].faults.map((f) => f.what) ?? [])
const has = (what) => until(async () => (await faults()).includes(what), `${what} is there`)
const hasNot = (what) => until(async () => !(await faults()).includes(what), `${what} is gone`)

await test(
  [
    ['the panel lists what is in store, and what has come of it', async () => {
      if (!(await id('panel-faults').isVisible())) await id('tab-faults').click()
      await id('panel-faults').waitFor({ state: 'visible' })
      await id('fault-script-9').waitFor({ state: 'visible' })
      check((await id('fault-script-0').textContent()).includes('at 2 s, for 2 s'), 'its time is not told')
      check((await id('fault-script-4').textContent()).includes('when odom.x > 3'), 'its condition is not told')
      // From the start again, now that somebody looks; slowly, for a machine that draws in software.
      await app(page, () => window.understudy.app.command('reset'))
      await app(page, () => window.understudy.app.command('rate 0.5'))
      await until(async () => (await id('fault-script-state-0').textContent()) === 'has come', 'the first comes')
      await id('fault-now-motor:front_left_drive=dead').waitFor({ state: 'visible' })
      check((await id('badge-faults').textContent()) === '1', 'the tab does not count it')
      await until(async () => (await id('fault-script-state-0').textContent()) === 'over', 'the first is over')
      await app(page, () => window.understudy.app.command('rate real'))
    }],
    ['buttons let parts fail, and mend them', async () => {
      await app(page, (file) => window.understudy.app.command(`record ${file}`), FILE)
      await id('fault-part-motor').click()
      await id('fault-motor-weak-number').fill('0.25')
      await id('fault-motor:rear_left_drive-weak').click()
      await has('motor:rear_left_drive=weak:0.25')
      await id('fault-part-encoder').click()
      await id('fault-encoder:front_left_steer-stuck').click()
      await has('encoder:front_left_steer=stuck')
      await id('fault-imu-bias').click()
      await until(async () => (await faults()).some((f) => f.startsWith('imu=bias:0.2')), 'the bias is there')
      await id('fault-link-delay').click()
      await has('link=delay:1.3')
      const row = id('fault-row-motor:rear_left_drive')
      await until(async () => (await row.getAttribute('class')).includes('failed'), 'the row shows it')
      await id('fault-part-encoder').click()
      await page.screenshot({ path: 'faults.png' })
      await id('fault-undo-motor:rear_left_drive').click()
      await hasNot('motor:rear_left_drive=weak:0.25')
      await id('fault-link-ok').click()
      await hasNot('link=delay:1.3')
    }],
    ['what the robot itself has lost is told: the computer starts, and has started', async () => {
      await id('fault-computer-reboot-number').fill('1')
      await id('fault-computer-reboot').click()
      await has('computer=reboot')
      await hasNot('computer=reboot')
    }],
    ['a number that cannot be is refused with the reason', async () => {
      await id('fault-link-loss-number').fill('2')
      await id('fault-link-loss').click()
      await page.getByText('out of range').first().waitFor({ state: 'visible' })
    }],
    ['a recording of it runs again bit for bit', async () => {
      await pass(page, 0.5)
      await app(page, () => window.understudy.app.command('record off'))
      check(existsSync(FILE), `${FILE} is not there`)
      const replay = spawnSync(process.env.US_PROGRAM, ['replay', FILE, '--verify'], { encoding: 'utf8', timeout: 60000 })
      check(replay.status === 0, `replay --verify: ${replay.status}\n${replay.stdout}${replay.stderr}`)
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
