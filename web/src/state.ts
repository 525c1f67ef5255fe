// The app: what came over the link is kept here, and all that panels and layers ask for goes out from here.
import type { App, AppEvents, BedInfo, LogLine, PairRow, RegionRow, RutTile, Selection, SoilRow, Status, World, View } from './app'
import { FRAME, Link, readCloud, readContacts, readHead, readPoses, readRuts, readTorques, readValues, type Message } from './link'

const MAX_WATCHED = 256 // the server's limit
const MAX_LOG = 1000

type Handlers = { [K in keyof AppEvents]?: Set<(data: AppEvents[K]) => void> }

export class PageApp implements App {
  control = false
  world: World | null = null
  time = 0
  status: Status | null = null
  pairs: PairRow[] = []
  soils: SoilRow[] = []
  regions: RegionRow[] = []
  log: LogLine[] = []
  poses: Float32Array = new Float32Array(0)
  beds: BedInfo[] = []
  ruts = new Map<string, RutTile>()
  selection: Selection | null = null
  watched: string[] = []
  connected = false
  hz = 30 // pictures a second that are asked for; set before the connection is there
  calm = 0 // ms at least between two 'poses' events: every text that changes is drawn anew
  picture: (time: number) => void = () => undefined // called for every picture, however calm the others are kept
  view!: View // set by main before anything else sees the app

  private readonly handlers: Handlers = {}
  private readonly link: Link
  private readonly waiting = new Map<number, { resolve: (text: string) => void; reject: (error: Error) => void }>()
  private nextId = 1
  private readonly wishes = new Map<string, string[]>() // owner -> names
  private readonly lists = new Map<number, string[]>() // generation -> names in order
  private generation = 0
  private readonly values = new Map<string, number>()
  private readonly needs = { contacts: 0, torques: 0, topics: 0 }
  private points = 0 // of each lidar
  private isSayingView = false
  private isSayingWatch = false
  private wantedEpoch = -1
  private bedEpoch = -1 // beds and ruts may come before the world that they are of
  private toldAt = -Infinity
  private telling = 0
  private isFetching = false
  private early: Promise<Response> | null = null // asked for before the connection was there
  private isStale = true // the world is of another connection, perhaps of another run

  constructor() {
    this.link = new Link({
      open: () => this.opened(),
      close: (reason) => this.closed(reason),
      message: (message) => this.take(message),
      frame: (data) => this.takeFrame(data),
    })
  }

  // Connects, and asks for the world at once: it is most likely still the same when the connection has said which one it is.
  start(): void {
    this.link.start()
    this.early = fetch('/api/world', { cache: 'no-store' })
    this.early.catch(() => undefined)
  }

  on<K extends keyof AppEvents>(event: K, handler: (data: AppEvents[K]) => void): () => void {
    const all = (this.handlers[event] ??= new Set() as Handlers[K]) as Set<(data: AppEvents[K]) => void>
    all.add(handler)
    return () => all.delete(handler)
  }

  emit<K extends keyof AppEvents>(event: K, data: AppEvents[K]): void {
    const all = this.handlers[event] as Set<(data: AppEvents[K]) => void> | undefined
    if (all) for (const handler of [...all]) handler(data)
  }

  select(selection: Selection | null): void {
    const last = this.selection
    if (last?.kind === selection?.kind && last?.index === selection?.index) return
    this.selection = selection
    this.emit('select', selection)
  }

  async command(text: string): Promise<string> {
    const id = this.nextId++
    try {
      return await new Promise<string>((resolve, reject) => {
        if (this.link.send({ op: 'command', id, text })) this.waiting.set(id, { resolve, reject })
        else reject(new Error('not connected to the simulator'))
      })
    } catch (error) {
      this.emit('toast', { text: (error as Error).message, bad: true })
      throw error
    }
  }

  drive(robot: string, vx: number, vy: number, wz: number): void {
    this.link.send({ op: 'drive', robot, vx, vy, wz })
  }

  watch(owner: string, names: string[]): void {
    if (names.length === 0) this.wishes.delete(owner)
    else this.wishes.set(owner, [...names])
    if (this.isSayingWatch) return
    // Several panels often change their wishes together: said once, soon.
    this.isSayingWatch = true
    setTimeout(() => this.sayWatch(), 30)
  }

  value(name: string): number | undefined {
    return this.values.get(name)
  }

  need(what: 'contacts' | 'torques' | 'topics', wanted: boolean): void {
    this.needs[what] = Math.max(0, this.needs[what] + (wanted ? 1 : -1))
    this.sayViewSoon()
  }

  wantPoints(most: number): void {
    this.points = most
    this.sayViewSoon()
  }

  private sayViewSoon(): void {
    if (this.isSayingView) return
    this.isSayingView = true
    setTimeout(() => this.sayView(), 30)
  }

  private sayView(): void {
    this.isSayingView = false
    const { contacts, torques, topics } = this.needs
    this.link.send({ op: 'view', hz: this.hz, contacts: contacts > 0, torques: torques > 0, topics: topics > 0, points: this.points })
  }

  private sayWatch(isNewLink = false): void {
    this.isSayingWatch = false
    const names = [...new Set([...this.wishes.values()].flat())].slice(0, MAX_WATCHED)
    const isSame = names.length === this.watched.length && names.every((name, i) => name === this.watched[i])
    if (isSame && !isNewLink) return
    this.watched = names
    this.generation++
    this.lists.set(this.generation, names)
    // Frames of the list before may still be under way; of older ones not.
    this.lists.delete(this.generation - 2)
    const kept = new Set(names)
    for (const name of this.values.keys()) if (!kept.has(name)) this.values.delete(name)
    this.link.send({ op: 'watch', generation: this.generation, values: names })
  }

  private opened(): void {
    this.connected = true
    this.emit('open', undefined)
    this.sayView()
    this.sayWatch(true)
  }

  private closed(reason: string): void {
    this.connected = false
    this.control = false
    for (const { reject } of this.waiting.values()) reject(new Error('the connection was lost before the answer came'))
    this.waiting.clear()
    this.emit('close', reason)
  }

  private take(message: Message): void {
    switch (message.op) {
      case 'hello':
        this.control = message.control
        this.log = []
        this.isStale = true
        this.bedEpoch = -1
        this.emit('hello', { version: message.version, scene: message.scene, control: message.control, reason: message.reason ?? '' })
        this.wantWorld(message.epoch)
        break
      case 'epoch':
        this.wantWorld(message.epoch)
        break
      case 'reply': {
        const asked = this.waiting.get(message.id)
        this.waiting.delete(message.id)
        if (message.ok) asked?.resolve(message.text)
        else asked?.reject(new Error(message.text))
        break
      }
      case 'error':
        this.emit('toast', { text: message.text, bad: true })
        break
      case 'status':
        this.status = message
        this.emit('status', message)
        break
      case 'pairs':
        this.pairs = message.pairs
        this.soils = message.soils
        this.regions = message.regions
        this.emit('pairs', message.pairs)
        break
      case 'beds':
        this.bedEpoch = message.epoch
        this.beds = message.beds
        this.ruts.clear()
        if (this.bedEpoch === this.world?.epoch) this.emit('beds', this.beds)
        break
      case 'log':
        this.log = [...this.log, ...message.lines].slice(-MAX_LOG)
        this.emit('log', this.log)
        break
      case 'topics':
        this.emit('topics', message.topics)
        break
    }
  }

  private wantWorld(epoch: number): void {
    this.wantedEpoch = epoch
    if (!this.isFetching) void this.fetchWorld()
  }

  // Gets the world until it is that of the epoch last heard of: edits may come faster than answers.
  private async fetchWorld(): Promise<void> {
    this.isFetching = true
    let failures = 0
    while (this.connected && (this.isStale || this.world?.epoch !== this.wantedEpoch)) {
      try {
        const answer = await (this.early ?? fetch('/api/world', { cache: 'no-store' }))
        this.early = null
        if (!answer.ok) throw new Error(`the world was not given: ${answer.status}`)
        const world = (await answer.json()) as World
        if (world.epoch < this.wantedEpoch && failures++ < 50) {
          await new Promise((resolve) => setTimeout(resolve, 50))
          continue
        }
        this.wantedEpoch = world.epoch
        this.enter(world)
      } catch (error) {
        this.early = null
        if (!this.connected) break
        if (++failures > 20) {
          this.emit('toast', { text: (error as Error).message, bad: true })
          this.link.restart()
          break
        }
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }
    this.isFetching = false
  }

  private enter(world: World): void {
    this.isStale = false
    const before = this.world
    const isOther = before === null || before.name !== world.name || before.file !== world.file
    this.world = world
    this.poses = new Float32Array(world.links.length * 7)
    for (let i = 0; i < world.links.length; i++) this.poses[i * 7 + 3] = 1
    const selection = this.selection
    this.selection = null
    this.emit('world', world)
    if (this.bedEpoch === world.epoch) this.emit('beds', this.beds)
    // What was picked stays picked when it is still there under the same name.
    if (selection && !isOther && before) this.select(sameByName(before, world, selection))
    else if (selection) this.emit('select', null)
    this.link.send({ op: 'full' })
  }

  private tellPoses(): void {
    if (this.telling !== 0) return
    const wait = this.toldAt + this.calm - performance.now()
    if (wait <= 0) {
      this.toldAt = performance.now()
      this.emit('poses', this.time)
      return
    }
    this.telling = window.setTimeout(() => {
      this.telling = 0
      this.tellPoses()
    }, wait)
  }

  private takeFrame(data: DataView): void {
    const head = readHead(data)
    if (head === null) return
    if (head.kind === FRAME.ruts && head.label === this.bedEpoch) {
      const ruts = readRuts(data, head.n)
      for (const rut of ruts) this.ruts.set(`${rut.bed}/${rut.u}_${rut.v}`, rut)
      if (this.bedEpoch === this.world?.epoch) this.emit('ruts', ruts)
      return
    }
    if (this.world === null) return
    if (head.kind === FRAME.values) {
      const names = this.lists.get(head.label)
      if (names === undefined || head.n !== names.length) return
      const values = readValues(data, head.n)
      names.forEach((name, i) => this.values.set(name, values[i] as number))
      if (head.label === this.generation) this.emit('values', { time: head.time, values })
      return
    }
    if (head.label !== this.world.epoch) return
    if (head.kind === FRAME.poses) {
      readPoses(data, head.n, this.poses)
      this.time = head.time
      this.picture(head.time)
      this.tellPoses()
    } else if (head.kind === FRAME.contacts) this.emit('contacts', readContacts(data, head.n))
    else if (head.kind === FRAME.torques) this.emit('torques', readTorques(data, head.n))
    else if (head.kind === FRAME.points) this.emit('cloud', readCloud(data, head.n, head.time))
  }
}

// The element of `after` with the name that `selection` has in `before`; null when there is none.
function sameByName(before: World, after: World, selection: Selection): Selection | null {
  const list = (world: World): string[] => {
    switch (selection.kind) {
      case 'group':
        return world.groups.map((x) => x.name)
      case 'link':
        return world.links.map((x) => x.name)
      case 'joint':
        return world.joints.map((x) => x.name)
      case 'drive':
        return world.drives.map((x) => x.name)
      case 'shape':
        return world.shapes.map((x, i) => x.name ?? `${x.link < 0 ? '' : (world.links[x.link]?.name ?? '')}#${i}`)
      case 'material':
        return world.materials.map((x) => x.name)
      case 'pair':
        return world.pairs.map((x) => `${x.a ?? ''} ${x.b ?? ''} ${x.fidelity ?? ''}`)
    }
  }
  const name = list(before)[selection.index]
  const index = name === undefined ? -1 : list(after).indexOf(name)
  return index < 0 ? null : { kind: selection.kind, index }
}
