// The panel of faults: what the scene has in store comes by itself, buttons let parts fail and mend them, and a recording of it runs again.
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { app, browse, check, command, open, run, scene, show, still, test, until } from './support.mjs'

const FILE = 'faults.mcap'
rmSync(FILE, { force: true })
const world = await run([scene('faults.xml')])
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const faults = () => app(page, () => window.understudy.app.status?.robots[0].faults.map((f) => f.what) ?? [])
const has = (what) => until(async () => (await faults()).includes(what), `${what} is there`)
const hasNot = (what) => until(async () => !(await faults()).includes(what), `${what} is gone`)
// Time stands, and goes on by steps alone: what the scene has in store comes when the test is there to see it.
async function step(n, tick) {
  await command(page, `step ${n}`)
  await still(page, tick)
}
// What the panel says of the first fault in store, what it lists as failed, and what its tab counts.
const said = () =>
  app(page, () => {
    const text = (id) => document.querySelector(`[data-testid="${id}"]`)?.textContent ?? ''
    return { script: text('fault-script-state-0'), isListed: text('fault-now-motor:front_left_drive=dead') !== '', badge: text('badge-faults') }
  })

await test(
  [
    ['the panel lists what is in store, and what has come of it', async () => {
      await show(page, 'faults')
      await id('fault-script-9').waitFor({ state: 'visible' })
      check((await id('fault-script-0').textContent()).includes('at 2 s, for 2 s'), 'its time is not told')
      check((await id('fault-script-4').textContent()).includes('when odom.x > 3'), 'its condition is not told')
      await command(page, 'pause')
      await command(page, 'reset')
      await still(page, 0)
      await until(async () => (await said()).script === 'waits', 'the first waits again')
      await step(2500, 2500)
      const hasCome = ({ script, isListed, badge }) => script === 'has come' && isListed && badge === '1'
      await until(async () => hasCome(await said()), 'the first has come, is listed, and the tab counts it')
      await step(2000, 4500)
      await until(async () => ((s) => s.script === 'over' && !s.isListed)(await said()), 'the first is over')
    }],
    ['buttons let parts fail, and mend them', async () => {
      await command(page, `record ${FILE}`)
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
      await step(100, 4600)
      await id('fault-part-encoder').click()
      await page.screenshot({ path: 'faults.png' })
      await id('fault-undo-motor:rear_left_drive').click()
      await hasNot('motor:rear_left_drive=weak:0.25')
      await id('fault-link-ok').click()
      await hasNot('link=delay:1.3')
    }],
    ['a joint breaks, and nothing undoes it', async () => {
      await id('fault-part-joint').click()
      await id('fault-joint:front_right_drive-broken').click()
      await id('fault-now-joint:front_right_drive=broken').waitFor({ state: 'visible' })
      check((await id('fault-undo-joint:front_right_drive').count()) === 0, 'it can be undone')
      // It is no longer there to be broken; the list is as open as it was.
      await id('fault-joint:front_right_drive-broken').waitFor({ state: 'detached' })
      await id('fault-joint:front_left_drive-broken').waitFor({ state: 'visible' })
    }],
    ['what the robot itself has lost is told: the computer starts, and has started', async () => {
      await id('fault-computer-reboot-number').fill('1')
      await id('fault-computer-reboot').click()
      await step(500, 5100)
      await has('computer=reboot')
      await step(1000, 6100)
      await hasNot('computer=reboot')
    }],
    ['a number that cannot be is refused with the reason', async () => {
      await id('fault-link-loss-number').fill('2')
      await id('fault-link-loss').click()
      await page.getByText('out of range').first().waitFor({ state: 'visible' })
    }],
    ['a recording of it runs again bit for bit', async () => {
      await command(page, 'record off')
      check(existsSync(FILE), `${FILE} is not there`)
      const replay = spawnSync(process.env.US_PROGRAM, ['replay', FILE, '--verify', '--trust'], { encoding: 'utf8', timeout: 60000 })
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
