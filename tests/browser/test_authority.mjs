// The panel of authority: a switch and a robot beside the simulated one, seen and asked from the page that the proxy serves.
import { spawn } from 'node:child_process'
import { app, browse, check, open, run, scene, show, test, until } from './support.mjs'

// CTest numbers its tests' domains from 1 to 200 and runs this one alone: the next two are free.
const operators = Number(process.env.ROS_DOMAIN_ID ?? 1)
const hardware = (operators % 200) + 1
const proxy = (hardware % 200) + 1
const environment = (domain) => ({ ...process.env, ROS_DOMAIN_ID: String(domain), ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' })

process.env.ROS_AUTOMATIC_DISCOVERY_RANGE = 'LOCALHOST'
process.env.ROS_DOMAIN_ID = String(proxy)
const world = await run([scene('default.xml'), '--set', 'motor_port=0'])
// The hardware is another run of the same scene: to a switch it is a robot like any other.
const children = [
  spawn(process.env.US_PROGRAM, ['run', scene('default.xml'), '--headless', '--set', 'motor_port=0'], { env: environment(hardware), stdio: 'ignore' }),
  spawn(
    process.env.US_PROGRAM,
    // No busy machine shall trip the watchdog, and what two rovers do that drive over rocks is not asked.
    ['switch', 'k10', '--operators', String(operators), '--hardware', String(hardware), '--proxy', String(proxy), '--watchdog', '100', '--plain'],
    { env: environment(operators), stdio: ['ignore', 'pipe', 'inherit'] },
  ),
]
process.on('exit', () => [world.child, ...children].forEach((child) => child.kill('SIGKILL')))
let log = ''
children[1].stdout.on('data', (data) => (log += data))
const browser = await browse()
const page = await open(browser, world.url)
const id = (name) => page.getByTestId(name)
const says = (cell, text) => until(async () => (await id(`authority-k10-${cell}`).textContent()) === text, `${cell} is ${text}`)

await test(
  [
    ['the panel shows who plays the robot', async () => {
      await show(page, 'authority')
      await id('authority-k10').waitFor({ state: 'visible' })
      await says('mode', 'hardware')
      await says('control', 'hardware')
      await says('alive', 'hardware, proxy')
      check(!(await id('authority-none').isVisible()), 'it says that there is no switch')
    }],
    ['a button gives control to the proxy', async () => {
      await id('authority-k10-to-proxy').click()
      await says('mode', 'proxy')
      await says('control', 'proxy')
      await says('reason', 'proxy was asked for')
      check((await id('authority-k10-to-proxy').getAttribute('aria-pressed')) === 'true', 'the button does not show it')
      await until(() => log.includes('proxy, proxy in control'), 'the switch logs it')
      await page.screenshot({ path: 'authority.png' })
      await id('panel-authority').screenshot({ path: 'panel-authority.png' })
    }],
    ['what the switch refuses is shown with its reason', async () => {
      await id('authority-k10-to-stop').click()
      await says('control', 'nobody')
      await id('authority-k10-to-mirror').click()
      await until(async () => (await id('authority-k10-refused').textContent()).includes('nobody is in control'), 'the refusal is shown')
      await says('mode', 'stop')
    }],
    ['a switch that nobody has started is not asked', async () => {
      const answer = await app(page, () => window.understudy.app.command('authority nobody proxy').then(String, String))
      check(answer.includes('no switch of a robot "nobody" is heard'), `answered: ${answer}`)
    }],
    ['the robot has no topic of the switch', async () => {
      await show(page, 'network')
      await page.locator('[data-testid="topic-/k10/odom"]').waitFor({ state: 'visible' })
      check((await page.locator('[data-testid^="topic-/understudy/authority"]').count()) === 0, 'the authority is listed as the robot’s')
    }],
    ['a switch that has ended is no longer shown', async () => {
      await show(page, 'authority')
      children[1].kill('SIGINT')
      await id('authority-none').waitFor({ state: 'visible', timeout: 60000 })
      check(!(await id('authority-k10').isVisible()), 'the robot is still there')
    }],
    ['nothing goes wrong on the page', async () => {
      const faults = page.faults.filter((fault) => !fault.includes('no switch of a robot'))
      check(faults.length === 0, faults.join('\n'))
    }],
  ],
  async () => {
    await browser.close()
    for (const child of children) child.kill('SIGKILL')
    await world.stop()
  },
)
