// A day of real time: a rover of metal and its stand-in behind a switch, an operator who drives, two recorders, fifty
// pages in a browser, and faults and hand-overs every hour. Looks for memory that grows, for processes that end, for
// clients that are dropped or wait, and for samples and ticks that are lost.
//
//     ./dev soak live [HOURS [MINUTES_BETWEEN_FAULTS]]
//     ./dev soak live 0.6 0.65                            the events of a day (24 rounds) in 36 minutes
//
// A day is not waited for where less shows the same: what grows with events grows with each of them, and what grows
// with time has a slope. Each process's memory is sampled every 5 s. Events happen in the first part of the run; its
// last four tenths, at most an hour, are quiet but for driving, watching and recording. So, after a warm-up:
//
//     with events    what it has at their end more than at the warm-up's, over their rounds, times 24 rounds
//     with time      the slope of a line through the quiet part, times 24 h. A step (a table that doubles) is no slope:
//                    the flatter one of its two halves counts
//
// What is measured is what was allocated and not given back, by every library in the process (tests/preload/
// live_bytes.c): to the byte, whatever the C library keeps to itself. What is mapped past it, threads' stacks for
// one, is in what the process has asked the system for (VmData), and when it is used in what it has of its own in the
// machine's memory (RssAnon). Buffers that were there from the start and are used for the first time, such as the 2 MB
// in which Cyclone DDS receives for each domain, grow in the last alone, for hours: the smaller of these two counts.
//
// Tolerated: 24 MB in a day, by which a program outlives a month in a gigabyte; and for who records the index of its
// recording, which every MCAP file ends with and the writer has to keep, in a buffer that doubles.
//
// Lost is what one end has and the other has not: the ticks of the run against those in its recording, and what its
// recording says was sent on reliable topics against what another process recorded from the network, byte by byte.
//
// Prints a line a minute and a verdict; code 1 when something was wrong. Everything is on this machine. On a busy one
// real time is missed, which the lines show and the verdict does not count.
import { spawn, execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
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
const TOLERATED = 24 // MB in a day
const RELIABLE = ['/k10/odom', '/k10/joint_states', '/k10/imu/data']
const domain = { operators: 141, hardware: 142, proxy: 143 }
const dir = mkdtempSync(join(tmpdir(), 'understudy-soak-'))
const program = join(build, 'understudy')

// ---- processes ----

const processes = []
function start(name, file, args, domainId) {
  const child = spawn(file, args, {
    cwd: dir,
    env: {
      ...process.env, ROS_DOMAIN_ID: String(domainId), ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST',
      LD_PRELOAD: join(build, 'tests/preload/live_bytes.so'), US_LIVE_BYTES: join(dir, `${name}.live`),
    },
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
// Memory of the process's own that is used, or was asked for, MB: mapped files do not count.
function memory(p, what = 'RssAnon') {
  const status = readFileSync(`/proc/${p.child.pid}/status`, 'utf8')
  return Number(new RegExp(`${what}:\\s*(\\d+)`).exec(status)[1]) / 1024
}

const live = (p) => Number(readFileSync(join(dir, `${p.name}.live`)).readBigInt64LE(0)) / 2 ** 20

// Samples of memory of each process that is watched: {time in h, MB used, MB asked for, MB allocated}.
const samples = new Map()
function sampleMemory() {
  for (const [p, list] of samples) list.push({ x: elapsed() / 3600, used: memory(p), asked: memory(p, 'VmData'), live: live(p) })
}
// MB per hour, by least squares.
function slope(list, key) {
  const n = list.length, mx = list.reduce((a, s) => a + s.x, 0) / n, my = mean(list, key)
  const xx = list.reduce((a, s) => a + (s.x - mx) ** 2, 0)
  return xx > 0 ? list.reduce((a, s) => a + (s.x - mx) * (s[key] - my), 0) / xx : 0
}
const mean = (list, key) => list.reduce((a, s) => a + s[key], 0) / list.length

// ---- recordings ----

// A recording as another reader of MCAP sees it.
async function openRecording(name) {
  const file = await open(join(dir, name))
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
  // The index is what the writer has to keep until the end.
  const index = mcap.chunkIndexes.reduce((n, c) => n + 90 + 10 * c.messageIndexOffsets.size, 0)
  return { mcap, size, index: index / 1e6 }
}
const digest = (bytes) => createHash('sha1').update(bytes).digest().readUIntLE(0, 6)
async function readDigests(mcap, topic) {
  const list = []
  for await (const m of mcap.readMessages({ topics: [topic] })) list.push(digest(m.data))
  return list
}
// What is in `sent` between the first and the last of `heard` and was not heard, or was heard and not sent.
function countLost(sent, heard) {
  let at = sent.indexOf(heard[0]), lost = 0, strange = at < 0 ? heard.length : 0
  for (const x of at < 0 ? [] : heard) {
    const next = sent.indexOf(x, at)
    if (next < 0) {
      strange++
      continue
    }
    lost += next - at
    at = next + 1
  }
  return { lost, strange }
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
const run = start('proxy', program, ['run', join(source, 'scenes/default.xml'), '--port', '0', '--set', 'motor_port=0', '--set', 'lidar_rate=0.01', '--record', 'day.mcap'], domain.proxy)
const theSwitch = start('switch', program, ['switch', 'k10', '--hardware', String(domain.hardware), '--proxy', String(domain.proxy), '--evidence', 'handover.jsonl'], domain.operators)
const port = await until('the page', () => /http:\/\/[^:]+:(\d+)/.exec(run.output)?.[1])
await until('the switch', () => /ready|in control/.test(theSwitch.output))
const recorder = start('recorder', program, ['record', 'network.mcap', ...RELIABLE, '--quiet'], domain.proxy)
const operator = start('operator', program, ['drive', 'k10', '--v', '0.2', '--w', '0.1', '--quiet'], domain.operators)
for (let i = 0; i < N_CLIENT; i++) connect(port, i)
await pause(20)

// s: the warm-up, at most ten minutes, and the beginning of the quiet part.
const log = [], warm = Math.min(0.15 * seconds, 600), quiet = seconds - Math.min(0.4 * seconds, 3600)
const rounds = []  // when they ended, s
for (const p of [run, theSwitch, hardware, operator, recorder]) samples.set(p, [])
let nextSample = elapsed()
let nextFault = warm, nFault = 0, nHandover = 0, nRefused = 0
console.log('  hours   run MB  switch MB  hardware MB   pace  missed  frames/s  worst ms  recording MB')
let lastFrames = clients.map((c) => c.frames), lastTime = elapsed(), nextLine = elapsed() + 60
while (elapsed() < seconds) {
  await pause(1)
  for (const p of processes) {
    if (p.ended !== null) wrongs.push(`${p.name} ended with ${p.ended}: ${p.output.slice(-300)}`)
  }
  if (processes.some((p) => p.ended !== null)) break
  if (elapsed() > nextSample) {
    nextSample += 5
    sampleMemory()
  }
  if (elapsed() > nextFault && elapsed() < quiet) {
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
      sampleMemory()
    }
    rounds.push(elapsed())
    nextSample = elapsed() + 5
  }
  if (elapsed() < nextLine) continue
  nextLine += 60
  const status = clients[0].status ?? {}
  const rates = clients.map((c, i) => (c.frames - lastFrames[i]) / (elapsed() - lastTime)).sort((a, b) => a - b)
  lastFrames = clients.map((c) => c.frames)
  lastTime = elapsed()
  const now = { run: memory(run), switch: memory(theSwitch), hardware: memory(hardware) }
  const worst = Math.max(...clients.map((c) => c.worst))
  clients.forEach((c) => { c.worst = 0 })
  const row = [(elapsed() / 3600).toFixed(2), now.run.toFixed(1), now.switch.toFixed(1), now.hardware.toFixed(1), (status.actual ?? 0).toFixed(3),
    status.missed ?? 0, rates[0].toFixed(1), worst, (statSync(join(dir, 'day.mcap')).size / 1e6).toFixed(0)]
  console.log(row.map((x, i) => String(x).padStart([7, 8, 10, 12, 7, 8, 10, 10, 13][i])).join(''))
  if (rates[0] === 0) wrongs.push(`a client got nothing for a minute at ${row[0]} h`)
}

// ---- the verdict ----

const isWhole = processes.every((p) => p.ended === null)
const lastTick = Math.max(...clients.map((c) => c.tick))
isOver = true
clients.forEach((c) => c.socket.close())
for (const p of [operator, recorder, theSwitch, run, hardware]) {
  if (p.ended === null) p.child.kill('SIGINT')
  await until(`the end of ${p.name}`, () => p.ended !== null, 60)
  if (p.ended !== 0) wrongs.push(`${p.name} ended with ${p.ended}`)
}

// Recordings: whole, without a hole.
const day = await openRecording('day.mcap'), network = await openRecording('network.mcap')
const ticks = [...day.mcap.channelsById.values()].find((c) => c.topic === '/understudy/ticks')
const nTick = Number(ticks ? day.mcap.statistics.channelMessageCounts.get(ticks.id) : 0n)
console.log(`recording: ${day.mcap.statistics.messageCount} messages, ${nTick} ticks, ${(day.size / 1e6).toFixed(0)} MB`)
if (nTick < lastTick) wrongs.push(`${nTick} ticks recorded of ${lastTick} and more`)
for (const topic of RELIABLE) {
  const sent = await readDigests(day.mcap, topic), heard = await readDigests(network.mcap, topic)
  const { lost, strange } = countLost(sent, heard)
  console.log(`${topic}: ${sent.length} sent, ${heard.length} heard by another process, ${lost} lost, ${strange} that nobody sent`)
  if (heard.length === 0 || lost || strange) wrongs.push(`${topic}: ${heard.length} heard, ${lost} lost, ${strange} strange`)
}

// Memory: flat, but for the index of a recording.
for (const [p, all] of isWhole ? samples : []) {
  const end = (rounds.at(-1) ?? warm) / 3600
  const before = all.filter((s) => Math.abs(s.x - warm / 3600) < 30 / 3600), after = all.filter((s) => s.x > end).slice(0, 6)
  const still = all.filter((s) => s.x > end + 15 / 3600), half = still.length >> 1
  const index = p === run ? day.index : p === recorder ? network.index : 0, tolerated = TOLERATED + (2 * index * 24 * 3600) / elapsed()
  const [used, asked, kept] = ['used', 'asked', 'live'].map((key) => {
    const events = rounds.length ? (24 * (mean(after, key) - mean(before, key))) / rounds.length : 0
    const time = 24 * Math.min(slope(still, key), slope(still.slice(0, half), key), slope(still.slice(half), key))
    return { events, time, sum: Math.max(events, 0) + Math.max(time, 0) }
  })
  console.log(`memory of the ${p.name}: ${mean(before, 'used').toFixed(1)} MB after the warm-up, ${all.at(-1).used.toFixed(1)} MB at the end; in a day ` +
    [[used, 'used'], [asked, 'asked for'], [kept, 'allocated']].map(([m, text]) => `${m.events.toFixed(1)} MB more ${text} with events, ${m.time.toFixed(1)} MB with time`).join(', ') +
    `; tolerated ${tolerated.toFixed(0)} MB`)
  if (!(all.at(-1).live > 0.1)) wrongs.push(`the memory of the ${p.name} was not counted`)
  const most = Math.max(kept.sum, Math.min(used.sum, asked.sum))
  if (most > tolerated) wrongs.push(`the ${p.name} grows by ${most.toFixed(1)} MB in a day`)
}
writeFileSync(join(dir, 'memory.csv'), [...samples].flatMap(([p, list]) => list.map((s) => `${p.name},${s.x},${s.used},${s.asked},${s.live}`)).join('\n') + '\n')
writeFileSync(join(dir, 'log.txt'), log.join('\n') + '\n')
console.log(`${nFault} faults, ${nHandover} hand-overs, ${nRefused} refused; ${dir} has the recording and log.txt`)
for (const w of wrongs.slice(0, 20)) console.log(`WRONG: ${w}`)
console.log(wrongs.length ? `${wrongs.length} things were wrong` : 'nothing was wrong')
process.exit(wrongs.length ? 1 : 0)
