// Where each robot has been: a ribbon behind its root, the last of it brightest.
import { BufferAttribute, BufferGeometry, Color, DoubleSide, DynamicDrawUsage, Mesh, MeshBasicMaterial } from 'three'
import type { App, Layer, World } from '../app'

const POINTS = 2000 // of each path; the oldest go first
const STEP = 0.04 // m between points
const WIDTH = 0.05 // m
const LIFT = 0.02 // m above the root
const COLORS = [0x62b6ff, 0xffb454, 0x7ee787, 0xd2a8ff]

class Path {
  readonly mesh: Mesh
  private readonly at = new Float32Array(POINTS * 3)
  private n = 0
  private readonly position = new BufferAttribute(new Float32Array(POINTS * 6), 3)
  private readonly color = new BufferAttribute(new Float32Array(POINTS * 8), 4)

  constructor(
    readonly root: number,
    readonly name: string,
    private readonly tint: Color,
  ) {
    const geometry = new BufferGeometry()
    this.position.setUsage(DynamicDrawUsage)
    this.color.setUsage(DynamicDrawUsage)
    geometry.setAttribute('position', this.position)
    geometry.setAttribute('color', this.color)
    const index = new Uint16Array((POINTS - 1) * 6)
    for (let i = 0; i + 1 < POINTS; i++) index.set([2 * i, 2 * i + 1, 2 * i + 3, 2 * i, 2 * i + 3, 2 * i + 2], i * 6)
    geometry.setIndex(new BufferAttribute(index, 1))
    const material = new MeshBasicMaterial({ vertexColors: true, transparent: true, side: DoubleSide, depthWrite: false, toneMapped: false })
    // Close over the ground, and never flickering with it.
    material.polygonOffset = true
    material.polygonOffsetFactor = -6
    material.polygonOffsetUnits = -60
    this.mesh = new Mesh(geometry, material)
    this.mesh.frustumCulled = false
    this.mesh.raycast = () => undefined
    this.mesh.visible = false // until it has a length
  }

  clear(): void {
    this.n = 0
    this.mesh.visible = false
  }

  show(): void {
    this.mesh.visible = isOn && this.n > 1
  }

  add(poses: Float32Array): void {
    const x = poses[this.root * 7] as number
    const y = poses[this.root * 7 + 1] as number
    const z = (poses[this.root * 7 + 2] as number) + LIFT
    if (this.n > 0) {
      const last = (this.n - 1) * 3
      const step = Math.hypot(x - (this.at[last] as number), y - (this.at[last + 1] as number), z - (this.at[last + 2] as number))
      if (step < STEP) return
      if (step > 1) this.n = 0 // it was put elsewhere
    }
    if (this.n === POINTS) {
      this.at.copyWithin(0, 3)
      this.n--
    }
    this.at.set([x, y, z], this.n * 3)
    this.n++
    this.rebuild()
    this.show()
  }

  private rebuild(): void {
    const { at, n } = this
    const position = this.position.array as Float32Array
    const color = this.color.array as Float32Array
    for (let i = 0; i < n; i++) {
      const a = Math.max(i - 1, 0) * 3
      const b = Math.min(i + 1, n - 1) * 3
      const dx = (at[b] as number) - (at[a] as number)
      const dy = (at[b + 1] as number) - (at[a + 1] as number)
      const scale = WIDTH / 2 / Math.max(Math.hypot(dx, dy), 1e-9)
      const x = at[i * 3] as number
      const y = at[i * 3 + 1] as number
      const z = at[i * 3 + 2] as number
      position.set([x - dy * scale, y + dx * scale, z, x + dy * scale, y - dx * scale, z], i * 6)
      const alpha = 0.2 + (0.6 * (i + 1)) / n
      for (const k of [0, 4]) color.set([this.tint.r, this.tint.g, this.tint.b, alpha], i * 8 + k)
    }
    this.position.needsUpdate = true
    this.color.needsUpdate = true
    this.mesh.geometry.setDrawRange(0, Math.max(n - 1, 0) * 6)
  }
}

let paths: Path[] = []
let isOn = false
let lastTime = 0

function enter(app: App, world: World): void {
  const before = new Map(paths.map((path) => [path.name, path]))
  paths = []
  world.groups.forEach((group, index) => {
    const root = world.links.findIndex((link) => link.group === index)
    if (!group.robot || root < 0) return
    const known = before.get(group.name)
    before.delete(group.name)
    const path = known && known.root === root ? known : new Path(root, group.name, new Color(COLORS[paths.length % COLORS.length]))
    if (known && known !== path) drop(known)
    app.view.scene.add(path.mesh)
    paths.push(path)
  })
  for (const path of before.values()) drop(path)
}

function drop(path: Path): void {
  path.mesh.removeFromParent()
  path.mesh.geometry.dispose()
}

const layer: Layer = {
  id: 'paths',
  title: 'Driven paths',
  order: 80,
  on: true,
  create(app) {
    app.on('poses', (time) => {
      if (time < lastTime) for (const path of paths) path.clear()
      lastTime = time
      for (const path of paths) path.add(app.poses)
    })
  },
  world(app, world) {
    enter(app, world)
  },
  show(_app, on) {
    isOn = on
    for (const path of paths) path.show()
  },
}
export default layer
