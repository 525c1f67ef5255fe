// What panels and layers may use: the link to the simulator, the world as it was described, and its state of now.
//
// A panel is a file in panels/, a layer a file in layers/: each exports a default Panel or Layer and is found by itself.
import type { Box3, Object3D, Scene, PerspectiveCamera } from 'three'

export type Vec3 = [number, number, number]
export type Quat = [number, number, number, number] // w x y z, as everywhere

export interface Group {
  name: string
  floating: boolean
  file: string | null
  robot: boolean
  namespace: string | null
  locomotion: { type: string; max_speed: number; max_turn: number } | null
  faults: ScriptedFault[]
}
// A fault that the scene has in store; `for` 0: it stays.
export interface ScriptedFault {
  what: string
  at: number
  when: string | null
  name: string | null
  after: string | null
  for: number
}
export interface LinkInfo {
  name: string
  group: number
  mass: number
  com: Vec3
  inertia: number[]
}
export interface JointInfo {
  name: string
  group: number
  type: string
  parent: number
  child: number
  p: Vec3
  q: Quat
  axis: Vec3
  limits: [number, number] | null
  damping: number
  stiffness: number
  friction: number
  armature: number
  n_q: number
  n_v: number
}
export interface DriveInfo {
  name: string
  joint: number
  kp: number
  kd: number
  limit: number
}
export interface ShapeInfo {
  link: number
  name: string | null
  kind: string
  size: Vec3
  p: Vec3
  q: Quat
  visual: boolean
  collision: boolean
  surface: string | null
  rgba: number[] | null
  margin: number
  level: number
  nx?: number
  ny?: number
  asset?: string
  ground?: { tiles: string; levels: number; photo: boolean; low: number; high: number } // of a height field
  points?: number[]
  parts?: ShapeInfo[]
  box?: { min: Vec3; max: Vec3 }
}
// A part of a ground with a material of its own, in the ground's x and y; later ones lie over earlier ones.
export interface RegionInfo {
  name: string
  shape: number
  material: string // at the start
  min: [number, number] // m, what it lies within
  max: [number, number]
  polygon?: number[] // x and y of one corner after the other
  mask?: { path: string; nx: number; ny: number } // in place of it: a byte for each sample, x fastest; not 0: belongs to it
}
// What can be set while a sensor runs, in `unit` from `low` to `high`; of a choice the number of one of `choices`.
export interface SensorParameter {
  name: string
  unit: string
  low: number
  high: number
  about: string
  choices?: string[]
}
export interface SensorKind {
  name: string
  readings: { name: string; unit: string }[]
  parameters: SensorParameter[]
}
// What a robot measures with; `link` -1: it has no place.
export interface SensorInfo {
  robot: string
  name: string
  kind: string
  rate: number // Hz; 0: every step
  link: number
  p: Vec3
  q: Quat
  range?: number // m
  fov?: number // rad, the whole angle of a cone that it sees
  wide?: number // rad, of a camera's pictures
  high?: number // rad
  // of a lidar
  lidar?: number // its number in frames
  rings?: number
  start?: number // rad
  sweep?: number // rad
  elevation?: [number, number] // rad, of its outermost beams
}
// A whole turn of a lidar: 4 numbers of 16 bits a point, x y z in units from the origin and a pair of bytes, intensity and ring.
export interface Cloud {
  lidar: number
  time: number
  unit: number // m
  origin: Vec3 // m, in the world
  n: number
  points: Int16Array
}
export interface World {
  epoch: number
  name: string
  file: string | null
  step: number
  gravity: Vec3
  integrator: string
  solver: string
  seed: number
  groups: Group[]
  links: LinkInfo[]
  joints: JointInfo[]
  drives: DriveInfo[]
  shapes: ShapeInfo[]
  materials: { name: string; properties: Record<string, string | number> }[]
  pairs: { a: string | null; b: string | null; model: string; fidelity: string | null }[]
  regions: RegionInfo[]
  sensors: SensorInfo[]
  sensor_kinds: SensorKind[] // of those
  couplings: { name: string }[]
  loops: { name: string; type: string }[]
}

export interface Contact {
  bodyA: number
  bodyB: number
  point: Vec3
  normal: Vec3
  force: Vec3
  gap: number
  sliding: boolean
}
export interface RobotStatus {
  name: string
  commands: number
  refused: number
  refusal: string
  faults: { what: string; text: string }[] // as a command has it, and in words
  scripts: number[] // of Group.faults: 0 not yet, 1 it has come, 2 it was undone again
}
export interface Status {
  time: number
  tick: number
  rate: number
  actual: number
  paused: boolean
  step_us: number
  missed: number
  worst_late_ms: number
  dropped: number // frames of lidars, left out to keep the pace
  clients: number
  recording: { file: string; messages: number; bytes: number } | null
  snapshots: { name: string; time: number }[]
  robots: RobotStatus[]
  sunk: Sunk[]
  authority: string[] // what switches tell, a line of JSON for each robot
  energy: number
}
// A bed of soil: columns over a height field.
export interface BedInfo {
  shape: number
  nx: number
  ny: number
  spacing: number
  p: Vec3
  q: Quat
  tiles: string // where the ground below its tiles is
}
// A tile of a bed that was touched: how its 64 x 64 columns differ from the ground as it was, in units of `unit` metres, x fastest.
export interface RutTile {
  bed: number
  u: number
  v: number
  unit: number
  change: Int16Array
}
export interface PairRow {
  a: string
  b: string
  values: Record<string, number>
}
export interface SoilRow {
  name: string
  values: Record<string, number>
}
export interface RegionRow {
  name: string
  material: string
}
// A wheel or foot in soil.
export interface Sunk {
  link: number
  soil: number // index of the material
  wheel: boolean
  buried: boolean
  sinkage: number
  slip: number
  slip_angle: number
  force: Vec3 // along the heading, to the left, normal
  moment: number
}
export interface TopicRow {
  name: string
  type: string
  out: boolean
  hz: number
  count: number
}
export interface LogLine {
  level: 'info' | 'warning' | 'error'
  time: number
  text: string
}

// What is picked: by kind and index in the world's list.
export interface Selection {
  kind: 'group' | 'link' | 'joint' | 'drive' | 'shape' | 'material' | 'pair'
  index: number
}

export interface AppEvents {
  open: void // connected
  close: string // connection lost, with the reason
  hello: { version: string; scene: string; control: boolean; reason: string }
  world: World // a new revision
  poses: number // time: app.poses holds the new ones; a few times a second where graphics are drawn in software
  values: { time: number; values: Float64Array } // in the order of app.watched
  contacts: Contact[]
  torques: Float32Array
  beds: BedInfo[] // of the world of now: app.ruts holds those of its tiles that were touched
  ruts: RutTile[] // tiles that have changed
  cloud: Cloud // a turn of a lidar of the world of now
  status: Status
  pairs: PairRow[]
  topics: TopicRow[]
  log: LogLine[] // all that are kept
  select: Selection | null
  toast: { text: string; bad: boolean }
}

export interface App {
  on<K extends keyof AppEvents>(event: K, handler: (data: AppEvents[K]) => void): () => void // returns the way to end it
  emit<K extends keyof AppEvents>(event: K, data: AppEvents[K]): void

  readonly connected: boolean
  readonly control: boolean // may this page command
  readonly world: World | null
  readonly time: number
  readonly status: Status | null
  readonly pairs: PairRow[]
  readonly soils: SoilRow[] // these and the regions come with the pairs
  readonly regions: RegionRow[]
  readonly log: LogLine[]
  readonly poses: Float32Array // 7 per body: x y z, qw qx qy qz
  readonly beds: BedInfo[]
  readonly ruts: Map<string, RutTile>
  readonly selection: Selection | null
  select(selection: Selection | null): void

  // A world command. Resolves with its text, or rejects with an Error that says why; failures are also shown as a toast.
  command(text: string): Promise<string>
  drive(robot: string, vx: number, vy: number, wz: number): void
  // Asks for values with every picture; each caller has a set of its own, and the sum of all is asked for. `undefined` until it came.
  watch(owner: string, names: string[]): void
  value(name: string): number | undefined
  readonly watched: string[] // the sum of all, in the order in which values come
  // Layers and panels that need contacts, torques or topics say so; counted.
  need(what: 'contacts' | 'torques' | 'topics', wanted: boolean): void
  // Points of each lidar that are wanted with a frame, at most; 0: none.
  wantPoints(most: number): void

  readonly view: View
}

// The 3-D view, z up.
export interface View {
  readonly scene: Scene
  readonly camera: PerspectiveCamera
  readonly canvas: HTMLCanvasElement
  body(index: number): Object3D // follows its body; -1: the world
  box(index: number): Box3 // around a body's shapes where they are now, along the world's axes; empty when it has none
  focus(selection: Selection): void // looks at all of it
  setCamera(mode: 'orbit' | 'follow' | 'onboard', body?: number): void
  readonly cameraMode: 'orbit' | 'follow' | 'onboard'
  lookAt(point: Vec3, distance?: number): void
  redraw(): void
  readonly fps: number
  readonly isWeak: boolean // drawn in software
  layers(): { id: string; title: string; on: boolean }[]
  setLayer(id: string, on: boolean): void
  // Where a ray through a point of the canvas (CSS pixels) meets the world; null: nowhere.
  pick(x: number, y: number): { point: Vec3; shape: number; link: number } | null
  // A handle that moves an object; `moved` is called with the new place when it is let go. Null takes it away. What stands still has no
  // body: its link is -1 and `shape` says which.
  showHandle(link: number | null, moved?: (p: Vec3, q: Quat) => void, shape?: number): void
  setShadows(on: boolean): void // drawn when on and the machine is quick enough
}

export interface Panel {
  id: string
  title: string
  order: number // from the left or top
  icon: string // a short SVG path on a 24 x 24 grid
  wide?: boolean // lies below the view where there is room
  isHidden?: boolean // is only offered once it says that it has something to show
  create(app: App, root: HTMLElement): void
  shown?(app: App, visible: boolean): void
}

export interface Layer {
  id: string
  title: string
  order: number
  on: boolean // at first
  isCostly?: boolean // off at first where graphics are drawn in software
  create(app: App): void
  world?(app: App, world: World): void // a new revision
  show(app: App, on: boolean): void
  frame?(app: App, dt: number): void // before each drawn frame, when on
}
