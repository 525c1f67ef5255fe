// The page over TLS, by a registered user who may drive and not change the world: what is allowed works, the rest is answered with the role it needs.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { browse, check, command, open, run, scene, test, until } from './support.mjs'

rmSync('users', { force: true })
const token = execFileSync(process.env.US_PROGRAM, ['keys', 'user', 'users', 'anna', 'drive']).toString().trim()
const world = await run([scene('default.xml'), '--offline', '--tls', '--users', 'users', '--port', '0', '--set', 'motor_port=0'])
const address = new URL(world.url)
address.searchParams.set('token', token)
const browser = await browse()
const page = await open(browser, address.href, { ignoreHTTPSErrors: true, viewport: { width: 900, height: 600 } })

await test(
  [
    ['the page is live over TLS', async () => {
      check(address.protocol === 'https:', `the address is ${world.url}`)
      check(/^certificate \(SHA-256\): ([0-9A-F]{2}:){31}[0-9A-F]{2}$/m.test(world.output), 'no fingerprint was told')
      await until(async () => (await page.evaluate(() => window.understudy.app.control)) === true, 'the page may command')
    }],
    ['what the role allows is done, the rest is answered with the role it needs', async () => {
      await command(page, 'drive k10/front_left_steer 0.1')
      const refusal = await command(page, 'pause').then(() => 'done', (error) => error.message)
      check(refusal.includes('needs the role "world", and anna has "drive"'), `pausing was answered: ${refusal}`)
    }],
    ['Foxglove clients come over the same port', async () => {
      const require = createRequire(join(process.env.US_NPM, 'x.js'))
      const { WebSocket } = require('ws')
      const socket = new WebSocket(`wss://localhost:${address.port}/?token=${token}`, ['foxglove.websocket.v1'], { rejectUnauthorized: false })
      const first = await new Promise((resolve, reject) => {
        socket.once('message', (data) => resolve(JSON.parse(data.toString())))
        socket.on('error', reject)
      })
      check(first.op === 'serverInfo' && first.capabilities.includes('clientPublish'), JSON.stringify(first))
      socket.close()
    }],
  ],
  async () => {
    check(page.faults.length === 0, page.faults.join('\n'))
    await browser.close()
    check((await world.stop()) === 0, 'the program did not end well')
  },
)
