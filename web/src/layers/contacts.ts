// Where bodies touch: a dot at each point, and the force there as an arrow. Points that slide have another colour.
//
// Forces reach from a pebble's to a rover's: an arrow's length grows with the logarithm of its force, 18 cm for each factor of ten over 1 N.
import { Color, ConeGeometry, CylinderGeometry, InstancedMesh, Matrix4, MeshBasicMaterial, Quaternion, SphereGeometry, Vector3 } from 'three'
import type { Contact, Layer } from '../app'

const CAPACITY = 1024 // contacts that are drawn at most
const PER_DECADE = 0.18 // m
const LONGEST = 1.2 // m
const HEAD = 0.07

const STICKS = new Color(0x4fd1ff)
const SLIDES = new Color(0xff8a3d)

function make(geometry: ConeGeometry | CylinderGeometry | SphereGeometry): InstancedMesh {
  const material = new MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.92, fog: false, toneMapped: false })
  const mesh = new InstancedMesh(geometry, material, CAPACITY)
  mesh.count = 0
  mesh.frustumCulled = false
  mesh.renderOrder = 20
  mesh.visible = false
  mesh.raycast = () => undefined
  mesh.setColorAt(0, STICKS)
  return mesh
}
const dots = make(new SphereGeometry(0.018, 12, 8))
const shafts = make(new CylinderGeometry(0.008, 0.008, 1, 8).translate(0, 0.5, 0))
const heads = make(new ConeGeometry(0.026, HEAD, 12).translate(0, HEAD / 2, 0))
const all = [dots, shafts, heads]

const Y = new Vector3(0, 1, 0)
const X = new Matrix4()
const q = new Quaternion()
const at = new Vector3()
const force = new Vector3()
const scale = new Vector3()

function put(mesh: InstancedMesh, color: Color): void {
  if (mesh.count >= CAPACITY) return
  mesh.setMatrixAt(mesh.count, X)
  mesh.setColorAt(mesh.count, color)
  mesh.count++
}

function draw(contacts: Contact[]): void {
  for (const mesh of all) mesh.count = 0
  for (const contact of contacts) {
    const color = contact.sliding ? SLIDES : STICKS
    at.set(...contact.point)
    put(dots, (X.makeTranslation(at), color))
    // The force on what moves: of two that do, on the first.
    force.set(...contact.force).multiplyScalar(contact.bodyA < 0 ? -1 : 1)
    const newton = force.length()
    const length = Math.min(PER_DECADE * Math.log10(1 + newton), LONGEST)
    if (!(length > 0.01)) continue
    q.setFromUnitVectors(Y, force.divideScalar(newton))
    const shaft = Math.max(length - HEAD, 0.001)
    X.compose(at, q, scale.set(1, shaft, 1))
    put(shafts, color)
    X.compose(at.addScaledVector(force, shaft), q, scale.set(1, 1, 1))
    put(heads, color)
  }
  for (const mesh of all) {
    mesh.instanceMatrix.needsUpdate = true
    if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true
  }
}

let isOn = false

const layer: Layer = {
  id: 'contacts',
  title: 'Contacts and forces',
  order: 60,
  on: false,
  create(app) {
    app.view.scene.add(...all)
    app.on('contacts', (contacts) => {
      if (!isOn) return
      draw(contacts)
      app.view.redraw()
    })
  },
  world() {
    draw([])
  },
  show(app, on) {
    if (isOn !== on) app.need('contacts', on)
    isOn = on
    draw([])
    for (const mesh of all) mesh.visible = on
  },
}
export default layer
