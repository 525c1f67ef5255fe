// The boxes that bodies are kept in while it is asked which of them may touch: along the world's axes.
import { BufferAttribute, BufferGeometry, LineBasicMaterial, LineSegments } from 'three'
import type { Layer } from '../app'

// The twelve edges of a box, as corners with a bit for each axis.
const EDGES = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 1, 3, 4, 6, 5, 7, 0, 4, 1, 5, 2, 6, 3, 7]

const lines = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: 0xf2c14e, transparent: true, opacity: 0.7 }))
lines.frustumCulled = false
lines.raycast = () => undefined

const layer: Layer = {
  id: 'boxes',
  title: 'Bounding boxes',
  order: 40,
  on: false,
  create(app) {
    lines.visible = false
    app.view.scene.add(lines)
  },
  world(_app, world) {
    lines.geometry.dispose()
    lines.geometry = new BufferGeometry()
    lines.geometry.setAttribute('position', new BufferAttribute(new Float32Array(world.links.length * EDGES.length * 3), 3))
  },
  show(_app, on) {
    lines.visible = on
  },
  frame(app) {
    const position = lines.geometry.getAttribute('position') as BufferAttribute | undefined
    if (!position) return
    const array = position.array as Float32Array
    let k = 0
    for (let i = 0; i < position.count / EDGES.length; i++) {
      const { min, max } = app.view.box(i)
      if (min.x > max.x) continue
      for (const corner of EDGES) {
        array[k++] = corner & 1 ? max.x : min.x
        array[k++] = corner & 2 ? max.y : min.y
        array[k++] = corner & 4 ? max.z : min.z
      }
    }
    lines.geometry.setDrawRange(0, k / 3)
    position.needsUpdate = true
  },
}
export default layer
