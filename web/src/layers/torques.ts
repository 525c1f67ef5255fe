// What the drives do: an arc about the axis of a joint that turns, an arrow along the axis of one that slides; the greater the torque or force,
// the longer.
import { BufferAttribute, BufferGeometry, Color, ConeGeometry, Group, Mesh, MeshBasicMaterial, Quaternion, Vector3 } from 'three'
import type { App, Layer, World } from '../app'

const STEPS = 48 // of a whole arc
const SIDES = 6
const WHOLE = 1.75 * Math.PI // rad, the longest arc
const TUBE = 0.05 // thickness over radius
const SMALLEST = 0.02 // N m or N: less shows nothing

// A tube along an arc of radius 1 about z, from x on: its triangles come in the order of the angle, so that a part of it can be drawn.
function arcGeometry(): BufferGeometry {
  const position: number[] = []
  const index: number[] = []
  for (let i = 0; i <= STEPS; i++) {
    const angle = (WHOLE * i) / STEPS
    for (let k = 0; k < SIDES; k++) {
      const turn = (2 * Math.PI * k) / SIDES
      const r = 1 + TUBE * Math.cos(turn)
      position.push(r * Math.cos(angle), r * Math.sin(angle), TUBE * Math.sin(turn))
      if (i === STEPS) continue
      const a = i * SIDES + k
      const b = i * SIDES + ((k + 1) % SIDES)
      index.push(a, a + SIDES, b, b, a + SIDES, b + SIDES)
    }
  }
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(position), 3))
  geometry.setIndex(index)
  return geometry
}

const materials = [0xffd166, 0xff7ab6].map(
  (color) => new MeshBasicMaterial({ color: new Color(color), depthTest: false, transparent: true, opacity: 0.9, fog: false, toneMapped: false }),
)
const head = new ConeGeometry(0.16, 0.34, 12)

interface Mark {
  root: Group
  arc: Mesh
  head: Mesh
  isSliding: boolean
}
let marks: Mark[] = []
let torques: Float32Array = new Float32Array(0)
let isOn = false

function build(app: App, world: World): void {
  for (const mark of marks) {
    mark.root.removeFromParent()
    mark.arc.geometry.dispose()
  }
  marks = []
  torques = new Float32Array(0)
  for (const drive of world.drives) {
    const joint = world.joints[drive.joint]
    const root = new Group()
    root.visible = false
    const isSliding = joint?.type === 'prismatic'
    const mark: Mark = { root, arc: new Mesh(arcGeometry(), materials[0]), head: new Mesh(head, materials[0]), isSliding }
    for (const mesh of [mark.arc, mark.head]) {
      mesh.renderOrder = 30
      mesh.frustumCulled = false
      mesh.raycast = () => undefined
      root.add(mesh)
    }
    if (joint) {
      // On the parent, where it does not spin with a wheel.
      const axis = new Vector3(...joint.axis).normalize()
      const [w, x, y, z] = joint.q
      root.position.set(...joint.p)
      root.quaternion.set(x, y, z, w).multiply(new Quaternion().setFromUnitVectors(new Vector3(0, 0, 1), axis))
      const box = app.view.box(joint.child)
      const size = box.isEmpty() ? 0.1 : box.getSize(new Vector3()).length() / 2
      root.scale.setScalar(Math.min(Math.max(size * 0.75, 0.05), 0.4))
      app.view.body(joint.parent).add(root)
    }
    marks.push(mark)
  }
}

function update(): void {
  marks.forEach((mark, i) => {
    const torque = torques[i] ?? 0
    mark.root.visible = isOn && Math.abs(torque) > SMALLEST
    if (!mark.root.visible) return
    // From 0.1 to 1000: the whole arc.
    const part = Math.min(Math.max((Math.log10(Math.abs(torque)) + 1) / 4, 0.08), 1)
    const sign = Math.sign(torque)
    const material = materials[sign > 0 ? 0 : 1] as MeshBasicMaterial
    mark.arc.material = material
    mark.head.material = material
    if (mark.isSliding) {
      mark.arc.visible = false
      mark.head.position.set(0, 0, sign * (0.4 + 1.2 * part))
      mark.head.rotation.set((sign * Math.PI) / 2, 0, 0)
      return
    }
    const steps = Math.max(Math.round(part * STEPS), 1)
    const angle = (WHOLE * steps) / STEPS
    mark.arc.geometry.setDrawRange(0, steps * SIDES * 6)
    // Negative ones go the other way round: mirrored in y.
    mark.arc.scale.set(1, sign, 1)
    mark.head.position.set(Math.cos(angle), sign * Math.sin(angle), 0)
    mark.head.rotation.set(0, 0, sign > 0 ? angle : Math.PI - angle)
  })
}

const layer: Layer = {
  id: 'torques',
  title: 'Drive torques',
  order: 70,
  on: false,
  create(app) {
    app.on('torques', (next) => {
      torques = next
      if (!isOn) return
      update()
      app.view.redraw()
    })
  },
  world(app, world) {
    build(app, world)
  },
  show(app, on) {
    if (isOn !== on) app.need('torques', on)
    isOn = on
    update()
  },
}
export default layer
