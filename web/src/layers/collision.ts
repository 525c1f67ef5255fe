// The shapes that collide, as wire, whatever is drawn in their place.
import { Color, Group, LineBasicMaterial, LineSegments, Mesh, MeshBasicMaterial, WireframeGeometry, type BufferGeometry, type Matrix4, type Object3D } from 'three'
import type { App, Layer, ShapeInfo, World } from '../app'
import { Assets } from '../view/assets'
import type { Ground } from '../view/ground'
import { matrixOf, solidOf } from '../view/shapes'
import { makeCut } from '../view/surfaces'

const material = new LineBasicMaterial({ color: 0x6ee7a8, transparent: true, opacity: 0.5 })
const groundMaterial = new MeshBasicMaterial({ color: 0x6ee7a8, transparent: true, opacity: 0.18, wireframe: true })
const wires = new Map<BufferGeometry, WireframeGeometry>()
let grounds: Ground[] = []
let assets: Assets
let parts: Object3D[] = []
let isOn = false

function wire(geometry: BufferGeometry): LineSegments {
  let lines = wires.get(geometry)
  if (!lines) wires.set(geometry, (lines = new WireframeGeometry(geometry)))
  const object = new LineSegments(lines, material)
  object.raycast = () => undefined
  return object
}

function hang(app: App, link: number, object: Object3D, X: Matrix4): void {
  const frame = new Group()
  frame.add(object)
  frame.applyMatrix4(X)
  app.view.body(link).add(frame)
  parts.push(frame)
  app.view.redraw()
}

function add(app: App, world: World, shape: ShapeInfo, index: number, X_BG: Matrix4): void {
  const link = world.shapes[index]?.link ?? -1
  const isCurrent = (): boolean => isOn && app.world === world
  for (const part of shape.parts ?? []) add(app, world, part, index, X_BG.clone().multiply(matrixOf(part.p, part.q)))
  if (shape.kind === 'mesh')
    assets.mesh(world, index, (group) => {
      if (!isCurrent()) return
      const all = new Group()
      group.updateMatrixWorld(true)
      group.traverse((node) => {
        if (!(node instanceof Mesh)) return
        const lines = wire(node.geometry as BufferGeometry)
        lines.applyMatrix4(node.matrixWorld)
        all.add(lines)
      })
      hang(app, link, all, X_BG)
    })
  else if (shape.kind === 'height-field') {
    const shade = { color: new Color(), low: 0, high: 1, isPlain: true }
    const finish = (mesh: Mesh): void => void (mesh.raycast = () => undefined)
    const look = { shade, cut: makeCut(), regions: null, budget: 20_000, stride: 2, pixels: 20, material: () => groundMaterial, finish }
    const ground = assets.ground(world, index, () => look, () => app.view.redraw())
    if (!ground) return
    ground.object.position.z = 0.004
    grounds.push(ground)
    hang(app, link, ground.object, X_BG)
  } else if (shape.kind !== 'half-space') {
    const solid = solidOf(shape)
    if (solid) hang(app, link, wire(solid.geometry), X_BG.clone().scale(solid.scale))
  }
}

function clear(): void {
  for (const part of parts) part.removeFromParent()
  parts = []
  grounds = []
}

function build(app: App): void {
  clear()
  const world = app.world
  if (!isOn || !world) return
  world.shapes.forEach((shape, i) => {
    if (shape.collision) add(app, world, shape, i, matrixOf(shape.p, shape.q))
  })
}

const layer: Layer = {
  id: 'collision',
  title: 'Collision shapes',
  order: 30,
  on: false,
  create(app) {
    assets = new Assets(true)
    app.on('hello', () => assets.clear())
  },
  world(app) {
    build(app)
  },
  show(app, on) {
    isOn = on
    build(app)
  },
  frame(app) {
    for (const ground of grounds) ground.update(app.view.camera, app.view.canvas.clientHeight)
  },
}
export default layer
