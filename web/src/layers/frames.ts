// The axes of every link: x red, y green, z blue.
import { BoxGeometry, BufferAttribute, Color, InstancedMesh, Matrix4, MeshBasicMaterial, Vector3, type BufferGeometry } from 'three'
import { mergeGeometries } from 'three/addons/utils/BufferGeometryUtils.js'
import type { Layer } from '../app'

const LENGTH = 0.22 // m
const WIDTH = 0.008

function axes(): BufferGeometry {
  const colors = [0xff5a52, 0x5bd66b, 0x4f9dff]
  const bars = [0, 1, 2].map((axis) => {
    const size = new Vector3(WIDTH, WIDTH, WIDTH).setComponent(axis, LENGTH)
    const shift = new Vector3().setComponent(axis, LENGTH / 2)
    const bar = new BoxGeometry(size.x, size.y, size.z).translate(shift.x, shift.y, shift.z)
    const n = bar.getAttribute('position').count
    const color = new Color(colors[axis])
    const array = new Float32Array(n * 3)
    for (let i = 0; i < n; i++) color.toArray(array, i * 3)
    bar.setAttribute('color', new BufferAttribute(array, 3))
    return bar
  })
  return mergeGeometries(bars)
}

let mesh: InstancedMesh | null = null
let isOn = false
const geometry = axes()
// Drawn over what would hide them: a link's frame is mostly inside the link.
const material = new MeshBasicMaterial({ vertexColors: true, depthTest: false, transparent: true, opacity: 0.9, fog: false, toneMapped: false })
const X = new Matrix4()

const layer: Layer = {
  id: 'frames',
  title: 'Frames',
  order: 50,
  on: false,
  create() {},
  world(app, world) {
    mesh?.removeFromParent()
    mesh?.dispose()
    mesh = new InstancedMesh(geometry, material, world.links.length)
    mesh.frustumCulled = false
    mesh.renderOrder = 10
    mesh.raycast = () => undefined
    mesh.visible = isOn
    app.view.scene.add(mesh)
  },
  show(_app, on) {
    isOn = on
    if (mesh) mesh.visible = on
  },
  frame(app) {
    if (!mesh) return
    for (let i = 0; i < mesh.count; i++) {
      const body = app.view.body(i)
      X.makeRotationFromQuaternion(body.quaternion).setPosition(body.position)
      mesh.setMatrixAt(i, X)
    }
    mesh.instanceMatrix.needsUpdate = true
  },
}
export default layer
