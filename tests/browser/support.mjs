// What the browser tests share: the program, a browser with the page open, waiting with a deadline, pictures.
//
// Environment: US_PROGRAM, US_SOURCE_DIR, US_NPM (node_modules with playwright-core), US_CHROMIUM. Pictures go to the current directory.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const source = process.env.US_SOURCE_DIR
export const scene = (name) => join(source, 'scenes', name)

export function check(what, message) {
  if (!what) throw new Error(message)
}

// Asks again until `question` gives something true, at most `seconds` long. The world goes on between two questions to the page: what belongs
// together is asked in one.
export async function until(question, what, seconds = 60) {
  const end = performance.now() + 1000 * seconds
  for (;;) {
    const answer = await question()
    if (answer) return answer
    if (performance.now() > end) throw new Error(`waited ${seconds} s in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

// Starts `understudy run` and resolves when it has told its address.
export function run(args) {
  const child = spawn(process.env.US_PROGRAM, ['run', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const world = { child, output: '', url: null, ended: null }
  world.ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)))
  process.on('exit', () => child.kill('SIGKILL')) // also when a test ends before its time
  const found = new Promise((resolve, reject) => {
    const hear = (data) => {
      world.output += data
      const match = /^page: (http\S+)/m.exec(world.output)
      if (match) {
        world.url = match[1]
        resolve(world)
      }
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', (code) => reject(new Error(`the program ended with ${code}:\n${world.output}`)))
    setTimeout(() => reject(new Error(`no address within 60 s:\n${world.output}`)), 60000).unref()
  })
  world.stop = async () => {
    child.kill('SIGINT')
    const end = setTimeout(() => child.kill('SIGKILL'), 10000)
    const code = await world.ended
    clearTimeout(end)
    return code
  }
  return found
}

export async function browse() {
  const require = createRequire(join(process.env.US_NPM, 'x.js'))
  const { chromium } = require('playwright-core')
  return chromium.launch({ executablePath: process.env.US_CHROMIUM, args: ['--no-sandbox'] })
}

// Opens the page and waits for its first picture. What the console says and what fails is kept in page.faults.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(90000) // a machine that draws in software and has other things to do takes its time for a click
  page.faults = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !isDriver(message.text())) page.faults.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => page.faults.push(`exception: ${error.message}`))
  page.on('requestfailed', (request) => page.faults.push(`request failed: ${request.url()}`))
  const begin = performance.now()
  await page.goto(url)
  await page.waitForSelector('html[data-ready="1"]', { state: 'attached', timeout: 60000 })
  page.readyAfter = performance.now() - begin
  return page
}

// What the graphics driver of a machine without one says about itself.
const isDriver = (text) => /GPU stall|Automatic fallback to software WebGL|GroupMarkerNotSet/.test(text)

export const app = (page, question, argument) => page.evaluate(question, argument)
// Waits until so many simulated seconds have passed on the page: pictures have come and were drawn meanwhile.
export async function pass(page, seconds) {
  const t = await page.evaluate(() => window.understudy.app.time)
  await until(() => page.evaluate((then) => window.understudy.app.time > then, t + seconds), `${seconds} s pass`)
}
// Where a link is, by name, and when.
export const moment = (page, name) =>
  page.evaluate((wanted) => {
    const a = window.understudy.app
    const i = a.world.links.findIndex((link) => link.name === wanted)
    return { time: a.time, p: Array.from(a.poses.subarray(7 * i, 7 * i + 3)) }
  }, name)
export const place = async (page, name) => (await moment(page, name)).p
// Waits until time stands, at `tick` when it is given, and the page has the places of that very tick.
export async function still(page, tick = null) {
  const stands = (t) => ((s) => s?.paused && (t === null || s.tick === t))(window.understudy.app.status)
  await until(() => page.evaluate(stands, tick), tick === null ? 'time stands' : `time stands at tick ${tick}`)
  // Bodies that do not move are not sent again, unless one asks for all of them.
  await page.evaluate(() => window.understudy.app.link.send({ op: 'full' }))
  await until(() => page.evaluate(() => ((a) => Math.abs(a.time - a.status.time) < 1e-9)(window.understudy.app)), 'the picture of now is there')
}
export const command = (page, text) => page.evaluate((t) => window.understudy.app.command(t), text)
// Opens a panel, unless it is.
export async function show(page, name) {
  if (!(await page.getByTestId(`panel-${name}`).isVisible())) await page.getByTestId(`tab-${name}`).click()
  await page.getByTestId(`panel-${name}`).waitFor({ state: 'visible' })
}

export const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])

// Runs a test: its parts in order, each told; the exit code says how it went.
export async function test(parts, done) {
  let failed = 0
  for (const [name, part] of parts) {
    try {
      await part()
      console.log(`ok      ${name}`)
    } catch (error) {
      failed++
      console.log(`FAILED  ${name}: ${error.message}`)
    }
  }
  if (done) await done()
  process.exit(failed ? 1 : 0)
}
