// The line to the simulator: one WebSocket, taken up again when it breaks, and the frames that come over it taken apart.
// What is on the wire is written in docs/viewer-protocol.md.
import type { BedInfo, Cloud, Contact, RegionRow, RutTile, SoilRow, Status, PairRow, TopicRow, LogLine } from './app'

export type Message =
  | { op: 'hello'; version: string; scene: string; epoch: number; control: boolean; reason?: string }
  | { op: 'epoch'; epoch: number }
  | { op: 'reply'; id: number; ok: boolean; text: string }
  | { op: 'error'; text: string }
  | ({ op: 'status' } & Status)
  | { op: 'pairs'; pairs: PairRow[]; soils: SoilRow[]; regions: RegionRow[] }
  | { op: 'beds'; epoch: number; beds: BedInfo[] }
  | { op: 'log'; lines: LogLine[] }
  | { op: 'topics'; topics: TopicRow[] }
  | { op: 'watching'; generation: number; unknown: string[] }

// What all frames begin with; `label` is the epoch, or the generation of a list of watched values.
export interface FrameHead {
  kind: number
  isFull: boolean
  label: number
  time: number
  tick: number
  n: number
}

export const FRAME = { poses: 1, values: 2, contacts: 3, torques: 4, ruts: 5, points: 6 }
const HEAD_BYTES = 32
const ENTRY_BYTES: Record<number, number> = { 1: 32, 2: 8, 3: 52, 4: 4, 5: 16 + 2 * 64 * 64, 6: 8 }
const CLOUD_BYTES = 32 // of points: between the head and the entries

// Null for what is no whole frame.
export function readHead(data: DataView): FrameHead | null {
  if (data.byteLength < HEAD_BYTES) return null
  const kind = data.getUint8(0)
  const n = data.getUint32(24, true)
  const entry = ENTRY_BYTES[kind]
  const between = kind === FRAME.points ? CLOUD_BYTES : 0
  if (entry === undefined || data.byteLength < HEAD_BYTES + between + n * entry) return null
  return {
    kind,
    isFull: (data.getUint8(1) & 1) !== 0,
    label: data.getUint32(4, true),
    time: data.getFloat64(8, true),
    tick: Number(data.getBigInt64(16, true)),
    n,
  }
}

// Enters the bodies of a frame into `poses`, 7 numbers each; those beyond its end are left out.
export function readPoses(data: DataView, n: number, poses: Float32Array): void {
  const last = poses.length / 7
  for (let i = 0; i < n; i++) {
    const at = HEAD_BYTES + i * 32
    const body = data.getUint32(at, true)
    if (body >= last) continue
    for (let k = 0; k < 7; k++) poses[body * 7 + k] = data.getFloat32(at + 4 + k * 4, true)
  }
}

export function readValues(data: DataView, n: number): Float64Array {
  const values = new Float64Array(n)
  for (let i = 0; i < n; i++) values[i] = data.getFloat64(HEAD_BYTES + i * 8, true)
  return values
}

export function readTorques(data: DataView, n: number): Float32Array {
  const torques = new Float32Array(n)
  for (let i = 0; i < n; i++) torques[i] = data.getFloat32(HEAD_BYTES + i * 4, true)
  return torques
}

export function readContacts(data: DataView, n: number): Contact[] {
  const contacts: Contact[] = []
  for (let i = 0; i < n; i++) {
    const at = HEAD_BYTES + i * 52
    const f = (k: number): number => data.getFloat32(at + 8 + k * 4, true)
    contacts.push({
      bodyA: data.getInt32(at, true),
      bodyB: data.getInt32(at + 4, true),
      point: [f(0), f(1), f(2)],
      normal: [f(3), f(4), f(5)],
      force: [f(6), f(7), f(8)],
      gap: f(9),
      sliding: (data.getUint32(at + 48, true) & 1) !== 0,
    })
  }
  return contacts
}

export function readRuts(data: DataView, n: number): RutTile[] {
  return Array.from({ length: n }, (_, i) => {
    const at = HEAD_BYTES + i * (ENTRY_BYTES[FRAME.ruts] as number)
    const change = Int16Array.from({ length: 64 * 64 }, (_, k) => data.getInt16(at + 16 + 2 * k, true))
    const [bed, u, v] = [0, 4, 8].map((k) => data.getInt32(at + k, true)) as [number, number, number]
    return { bed, u, v, unit: data.getFloat32(at + 12, true), change }
  })
}

// The numbers of points stay where they lie: machines that show pages are little endian, as frames are.
export function readCloud(data: DataView, n: number, time: number): Cloud {
  const at = HEAD_BYTES
  const [x, y, z] = [8, 16, 24].map((k) => data.getFloat64(at + k, true)) as [number, number, number]
  const points = new Int16Array(data.buffer, data.byteOffset + at + CLOUD_BYTES, 4 * n)
  return { lidar: data.getUint32(at, true), time, unit: data.getFloat32(at + 4, true), origin: [x, y, z], n, points }
}

// How long to wait before the next try, in ms: short at first, never longer than the last.
const WAITS = [300, 600, 1200, 2500, 4000]

export interface LinkHandlers {
  open(): void
  close(reason: string): void
  message(message: Message): void
  frame(data: DataView): void
}

export class Link {
  private socket: WebSocket | null = null
  private tries = 0
  private timer = 0
  private readonly address: string

  constructor(private readonly handlers: LinkHandlers) {
    const token = new URLSearchParams(location.search).get('token')
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
    this.address = `${scheme}//${location.host}/${token === null ? '' : `?token=${encodeURIComponent(token)}`}`
  }

  start(): void {
    this.connect()
    // Somebody who comes back to the page, or whose network is back, should not have to wait.
    const hurry = (): void => {
      if (document.visibilityState === 'visible' && this.socket === null && this.timer !== 0) this.connect()
    }
    addEventListener('online', hurry)
    document.addEventListener('visibilitychange', hurry)
  }

  // False when there is no connection.
  send(message: object): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false
    this.socket.send(JSON.stringify(message))
    return true
  }

  // Gives up this connection and makes another: when what came makes no sense.
  restart(): void {
    this.socket?.close()
  }

  private connect(): void {
    clearTimeout(this.timer)
    this.timer = 0
    const socket = new WebSocket(this.address, 'understudy.v1')
    this.socket = socket
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => {
      this.tries = 0
      this.handlers.open()
    }
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data !== 'string') this.handlers.frame(new DataView(event.data))
      else this.handlers.message(JSON.parse(event.data) as Message)
    }
    socket.onclose = (event) => {
      if (this.socket !== socket) return
      this.socket = null
      const wait = WAITS[Math.min(this.tries, WAITS.length - 1)] ?? 4000
      this.tries++
      this.timer = window.setTimeout(() => this.connect(), wait)
      this.handlers.close(event.reason || (this.tries > 1 ? 'the simulator does not answer' : 'the connection to the simulator was lost'))
    }
  }
}
