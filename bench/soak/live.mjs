// A day of real time: a rover of metal and its stand-in behind a switch, an operator who drives, a recorder, fifty
// pages in a browser, and faults every hour. Looks for memory that grows, for processes that end, for clients
// that are dropped or wait, and for operators' commands that reach nobody.
//
//     ./dev soak live [HOURS [MINUTES_BETWEEN_FAULTS]]
//
// Prints a line a minute and a verdict; code 1 when something was wrong. Everything is on this machine.
import { spawn, execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [source, build, hoursText = '24', minutesText = '60'] = process.argv.slice(2)
const seconds = Number(hoursText) * 3600, between = Number(minutesText) * 60
if (!(seconds > 0) || !(between > 0)) {
  console.error('usage: live.mjs SOURCE BUILD [HOURS [MINUTES_BETWEEN_FAULTS]]')
  process.exit(2)
}
const required = createRequire(join(build, 'npm', 'package.json'))
const WebSocket = required('ws')
const { McapIndexedReader } = required('@mcap/core')
const { loadDecompressHandlers } = required('@mcap/support')
const N_CLIENT = 50
const domain = { operators: 141, hardware: 142, proxy: 143 }
const dir = mkdtempSync(join(tmpdir(), 'understudy-soak-'))
const program = join(build, 'understudy')

// ---- processes ----

const processes = []
function start(name, file, args, domainId) {
  const child = spawn(file, args, {
    cwd: dir, env: { ...process.env, ROS_DOMAIN_ID: String(domainId), ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const p = { name, child, output: '', ended: null }
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => { p.output = (p.output + text).slice(-20000) })
  }
  child.on('exit', (code, signal) => { p.ended = signal ?? code })
  processes.push(p)
  return p
}
function ask(args, where = domain.operators) {
  return new Promise((resolve) => {
    const env = { ...process.env, ROS_DOMAIN_ID: String(where), ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' }
    execFile(program, args, { cwd: dir, env, timeout: 90000 }, (error, out, err) => resolve({ ok: !error, text: (out + err).trim() }))
  })
}
const pause = (s) => new Promise((resolve) => setTimeout(resolve, 1000 * s))
async function until(what, test, patience = 60) {
  for (const end = Date.now() + 1000 * patience; Date.now() < end; await pause(0.1)) {
    const found = test()
    if (found) return found
  }
  throw new Error(`waited for ${what}`)
}
// Resident memory that is the process's own, MB: mapped files do not count.
function memory(p) {
  const status = readFileSync(`/proc/${p.child.pid}/status`, 'utf8')
  return Number(/RssAnon:\s*(\d+)/.exec(status)[1]) / 1024
}

// ---- pages ----

const wrongs = []
const clients = []
function connect(port, i) {
  const c = { i, frames: 0, bytes: 0, tick: -1, closed: 0, status: null, worst: 0, seen: Date.now() }
  const open = () => {
    c.socket = new WebSocket(`ws://127.0.0.1:${port}/`, 'understudy.v1')
    c.socket.on('open', () => c.socket.send(JSON.stringify({ op: 'view', hz: 20, contacts: i % 2 === 0, torques: i % 3 === 0, topics: i % 5 === 0 })))
    c.socket.on('message', (data, isBinary) => {
      const now = Date.now()
      c.worst = Math.max(c.worst, now - c.seen)
      c.seen = now
      if (!isBinary) {
        const m = JSON.parse(data)
        if (m.op === 'status') c.status = m
        if (m.op === 'error') wrongs.push(`client ${i}: ${m.text}`)
        return
      }
      c.frames++
      c.bytes += data.length
      const tick = Number(data.readBigInt64LE(16))
      if (tick < c.tick) wrongs.push(`client ${i}: tick ${tick} after ${c.tick}`)
      c.tick = tick
    })
    c.socket.on('error', () => {})
    c.socket.on('close', (code, reason) => {
      if (isOver) return
      c.closed++
      wrongs.push(`client ${i}: closed with ${code} ${reason}`)
      setTimeout(open, 500)
    })
  }
  open()
  clients.push(c)
}

// ---- the day ----

let isOver = false
const begun = Date.now()
const elapsed = () => (Date.now() - begun) / 1000
const hardware = start('hardware', join(build, 'examples', 'k10_hardware'), [join(source, 'models/k10.urdf'), '--domain', String(domain.hardware)], domain.hardware)
const run = start('proxy', program, ['run', join(source, 'scenes/default.xml'), '--port', '0', '--set', 'motor_port=0', '--record', 'day.mcap'], domain.proxy)
const theSwitch = start('switch', program, ['switch', 'k10', '--hardware', String(domain.hardware), '--proxy', String(domain.proxy), '--evidence', 'handover.jsonl'], domain.operators)
const port = await until('the page', () => /http:\/\/[^:]+:(\d+)/.exec(run.output)?.[1])
await until('the switch', () => /ready|in control/.test(theSwitch.output))
const operator = start('operator', program, ['drive', 'k10', '--v', '0.2', '--w', '0.1', '--quiet'], domain.operators)
for (let i = 0; i < N_CLIENT; i++) connect(port, i)
await pause(20)

const first = {}, log = []
let nextFault = elapsed() + Math.min(between, seconds / 4), nFault = 0, nHandover = 0, nRefused = 0
console.log('  hours   run MB  switch MB  hardware MB   pace  missed  frames/s  worst ms  recording MB')
let lastFrames = clients.map((c) => c.frames), lastTime = elapsed(), nextLine = elapsed() + 60
while (elapsed() < seconds) {
  await pause(1)
  for (const p of processes) {
    if (p.ended !== null) wrongs.push(`${p.name} ended with ${p.ended}: ${p.output.slice(-300)}`)
  }
  if (processes.some((p) => p.ended !== null)) break
  if (elapsed() > nextFault) {
    nextFault += between
    nFault++
    const fault = ['motor:front_left_drive=dead', 'imu=stuck', 'encoder:rear_left_drive=stuck', 'link=outage'][nFault % 4]
    const broken = await ask(['fault', 'k10', fault], domain.proxy)
    await pause(5)
    const mended = await ask(['fault', 'k10', `${fault.split('=')[0]}=ok`], domain.proxy)
    if (!broken.ok || !mended.ok) wrongs.push(`fault ${fault}: ${broken.text} ${mended.text}`)
    log.push(`${(elapsed() / 3600).toFixed(2)} h: ${fault}: ${broken.text}`)
    for (const to of [['proxy'], ['hardware', '--match'], ['hardware', '--anyway']]) {
      const answer = await ask(['switch', 'k10', '--to', ...to])
      nHandover += answer.ok
      nRefused += !answer.ok
      log.push(`  to ${to.join(' ')}: ${answer.text}`)
      await pause(3)
    }
  }
  if (elapsed() < nextLine) continue
  nextLine += 60
  const status = clients[0].status ?? {}
  const rates = clients.map((c, i) => (c.frames - lastFrames[i]) / (elapsed() - lastTime)).sort((a, b) => a - b)
  lastFrames = clients.map((c) => c.frames)
  lastTime = elapsed()
  const now = { run: memory(run), switch: memory(theSwitch), hardware: memory(hardware) }
  if (!first.run) Object.assign(first, now)
  const worst = Math.max(...clients.map((c) => c.worst))
  clients.forEach((c) => { c.worst = 0 })
  const row = [(elapsed() / 3600).toFixed(2), now.run.toFixed(1), now.switch.toFixed(1), now.hardware.toFixed(1), (status.actual ?? 0).toFixed(3),
    status.missed ?? 0, rates[0].toFixed(1), worst, (statSync(join(dir, 'day.mcap')).size / 1e6).toFixed(0)]
  console.log(row.map((x, i) => String(x).padStart([7, 8, 10, 12, 7, 8, 10, 10, 13][i])).join(''))
  if (rates[0] === 0) wrongs.push(`a client got nothing for a minute at ${row[0]} h`)
}

// ---- the verdict ----

const last = processes.every((p) => p.ended === null) ? { run: memory(run), switch: memory(theSwitch), hardware: memory(hardware) } : null
isOver = true
clients.forEach((c) => c.socket.close())
for (const p of [operator, theSwitch, run, hardware]) {
  if (p.ended === null) p.child.kill('SIGINT')
  await until(`the end of ${p.name}`, () => p.ended !== null, 30)
  if (p.ended !== 0) wrongs.push(`${p.name} ended with ${p.ended}`)
}
// Flat: not more than a few MB above the first minute, whatever the length.
for (const name of Object.keys(last ?? {})) {
  const more = last[name] - first[name]
  console.log(`${name}: ${first[name].toFixed(1)} MB after the first minute, ${last[name].toFixed(1)} MB at the end`)
  if (more > 8) wrongs.push(`${name} has grown by ${more.toFixed(1)} MB`)
}
// The recording is whole, as another reader of MCAP sees it, and has a hash for every tick.
const file = await open(join(dir, 'day.mcap'))
const size = (await file.stat()).size
const readable = {
  size: async () => BigInt(size),
  read: async (offset, length) => {
    const bytes = new Uint8Array(Number(length))
    await file.read(bytes, 0, bytes.length, Number(offset))
    return bytes
  },
}
const mcap = await McapIndexedReader.Initialize({ readable, decompressHandlers: await loadDecompressHandlers() })
const ticks = [...mcap.channelsById.values()].find((c) => c.topic === '/understudy/ticks')
const nTick = ticks ? mcap.statistics.channelMessageCounts.get(ticks.id) : 0n
console.log(`recording: ${mcap.statistics.messageCount} messages, ${nTick} ticks, ${(size / 1e6).toFixed(0)} MB`)
if (Number(nTick) < 900 * clients[0].tick / 1000) wrongs.push(`${nTick} ticks recorded of ${clients[0].tick}`)
writeFileSync(join(dir, 'log.txt'), log.join('\n') + '\n')
console.log(`${nFault} faults, ${nHandover} hand-overs, ${nRefused} refused; ${dir} has the recording and log.txt`)
for (const w of wrongs.slice(0, 20)) console.log(`WRONG: ${w}`)
console.log(wrongs.length ? `${wrongs.length} things were wrong` : 'nothing was wrong')
process.exit(wrongs.length ? 1 : 0)
