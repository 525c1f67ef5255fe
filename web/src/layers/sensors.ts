// Where sensors sit and what they can see: axes at each, the cone of those that look somewhere, the pyramid of a camera, and for a lidar the cones of
// its highest and lowest beams and the ends of its sweep.
import { BufferAttribute, BufferGeometry, Color, Group, LineBasicMaterial, LineSegments } from 'three'
import type { App, Layer, SensorInfo, World } from '../app'
import { matrixOf } from '../view/shapes'

const AXIS = 0.15 // m
const REACH = 3 // m of what a lidar sees that is outlined
const SECTORS = 48 // of a circle
const AXES = [new Color(0xff5a52), new Color(0x5bd66b), new Color(0x4f9dff)]
const BEAM = new Color(0xf2c14e)

let parts: Group[] = []
let isOn = false

// Of what looks somewhere by name: which axis, and which way.
const LOOKS: Record<string, [axis: 0 | 1 | 2, way: 1 | -1]> = {
  'sun-sensor': [2, 1],
  'star-tracker': [2, 1],
  altimeter: [2, -1],
  range: [0, 1],
  proximity: [0, 1],
  spectrometer: [0, 1],
  lidar: [0, 1],
}

type Point = [number, number, number]

// The cone that a sensor sees; a line where it has no width.
function cone(sensor: SensorInfo, [axis, way]: [0 | 1 | 2, 1 | -1]): [Point, Point, Color][] {
  const r = Math.min(REACH, sensor.range ?? REACH)
  const half = (sensor.fov ?? 0) / 2
  const at = (turn: number): Point => {
    const along = way * r * Math.cos(half)
    const across = r * Math.sin(half)
    const p: Point = [0, 0, 0]
    p[axis] = along
    p[(axis + 1) % 3] = across * Math.cos(turn)
    p[(axis + 2) % 3] = across * Math.sin(turn)
    return p
  }
  const turn = (i: number): number => (2 * Math.PI * i) / SECTORS
  const lines: [Point, Point, Color][] = []
  for (const i of half > 0 ? [0, 0.25, 0.5, 0.75] : [0]) lines.push([[0, 0, 0], at(turn(i * SECTORS)), BEAM])
  for (let i = 0; half > 0 && i < SECTORS; i++) lines.push([at(turn(i)), at(turn(i + 1)), BEAM])
  return lines
}

// The pyramid that a camera sees, as far as one has edges.
function pyramid({ wide = 0, high = 0 }: SensorInfo): [Point, Point, Color][] {
  const slope = (angle: number): number => Math.tan(Math.min(angle / 2, 1.4))
  const corner = (y: number, z: number): Point => {
    const p: Point = [1, y * slope(wide), z * slope(high)]
    return p.map((v) => (v * REACH) / Math.hypot(...p)) as Point
  }
  const corners = [corner(1, 1), corner(-1, 1), corner(-1, -1), corner(1, -1)]
  return corners.flatMap((p, i): [Point, Point, Color][] => [
    [[0, 0, 0], p, BEAM],
    [p, corners[(i + 1) % 4], BEAM],
  ])
}

function outline(sensor: SensorInfo): [Point, Point, Color][] {
  const lines: [Point, Point, Color][] = AXES.map((color, axis) => [[0, 0, 0], [0, 1, 2].map((k) => (k === axis ? AXIS : 0)) as Point, color])
  const { elevation, start = 0, sweep = 2 * Math.PI, range = REACH } = sensor
  const looks = LOOKS[sensor.kind]
  if (sensor.kind === 'camera') return [...lines, ...pyramid(sensor)]
  if (!elevation) return looks ? [...lines, ...cone(sensor, looks)] : lines
  const r = Math.min(REACH, range)
  const isWhole = Math.abs(sweep) > 2 * Math.PI - 1e-6
  const at = (share: number, up: number): Point => {
    const turn = start + share * sweep
    return [r * Math.cos(up) * Math.cos(turn), r * Math.cos(up) * Math.sin(turn), r * Math.sin(up)]
  }
  for (const up of new Set(elevation)) {
    for (let i = 0; i < SECTORS; i++) lines.push([at(i / SECTORS, up), at((i + 1) / SECTORS, up), BEAM])
    const rays = isWhole ? [0, 0.25, 0.5, 0.75] : [0, 1]
    for (const share of rays) lines.push([[0, 0, 0], at(share, up), BEAM])
  }
  return lines
}

function make(sensor: SensorInfo): LineSegments {
  const lines = outline(sensor)
  const position = new Float32Array(lines.flatMap(([a, b]) => [...a, ...b]))
  const color = new Float32Array(lines.flatMap(([, , c]) => [c.r, c.g, c.b, c.r, c.g, c.b]))
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(position, 3))
  geometry.setAttribute('color', new BufferAttribute(color, 3))
  const object = new LineSegments(geometry, new LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.8, fog: false, toneMapped: false }))
  object.frustumCulled = false
  object.raycast = () => undefined
  return object
}

function build(app: App, world: World): void {
  for (const part of parts) part.removeFromParent()
  parts = []
  for (const sensor of world.sensors) {
    if (sensor.link < 0) continue
    const frame = new Group()
    frame.add(make(sensor))
    frame.applyMatrix4(matrixOf(sensor.p, sensor.q))
    frame.visible = isOn
    app.view.body(sensor.link).add(frame)
    parts.push(frame)
  }
  app.view.redraw()
}

const layer: Layer = {
  id: 'sensors',
  title: 'Sensors and beams',
  order: 57,
  on: false,
  create() {},
  world(app, world) {
    build(app, world)
  },
  show(_app, on) {
    isOn = on
    for (const part of parts) part.visible = on
  },
}
export default layer
