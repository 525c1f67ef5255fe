// What is selected: brighter, and in a box of lines that goes with it.
import { Box3, Box3Helper, Color, type LineBasicMaterial } from 'three'
import type { Selection, World } from '../app'
import type { Bodies } from './bodies'
import { matrixOf } from './shapes'
import { ACCENT } from './surfaces'

// Which links and single shapes a selection stands for.
export function extentOf(world: World, selection: Selection | null): { links: number[]; shapes: number[] } {
  const none = { links: [], shapes: [] }
  if (!selection) return none
  const { kind, index } = selection
  switch (kind) {
    case 'group':
      return { links: world.links.flatMap((link, i) => (link.group === index ? [i] : [])), shapes: [] }
    case 'link':
      return { links: [index], shapes: [] }
    case 'joint':
      return { links: [world.joints[index]?.child ?? -1].filter((link) => link >= 0), shapes: [] }
    case 'drive':
      return extentOf(world, { kind: 'joint', index: world.drives[index]?.joint ?? -1 })
    case 'shape':
      return { links: [], shapes: [index] }
    case 'material': {
      const name = world.materials[index]?.name
      return { links: [], shapes: world.shapes.flatMap((shape, i) => (name !== undefined && shape.surface === name ? [i] : [])) }
    }
    case 'pair':
      return none
  }
}

export class Outline {
  private readonly helpers: Box3Helper[] = []

  // The lines hang on the bodies: after a new world, or another selection, they are made anew.
  show(bodies: Bodies, selection: Selection | null): void {
    this.clear()
    const { links, shapes } = extentOf(bodies.world, selection)
    const lit = new Set(shapes)
    bodies.world.shapes.forEach((shape, i) => {
      if (shape.link >= 0 && links.includes(shape.link)) lit.add(i)
    })
    bodies.highlight((shape) => lit.has(shape))
    for (const link of links) {
      const box = bodies.boxes[link]
      if (box && !box.isEmpty()) this.add(bodies, link, box)
    }
    // Many shapes at once are only made brighter.
    if (shapes.length > 8) return
    for (const index of shapes) {
      const shape = bodies.world.shapes[index]
      const box = shape ? bodies.shapeBoxes.get(index) : undefined
      if (shape && box && !box.isEmpty()) this.add(bodies, shape.link, box.clone().applyMatrix4(matrixOf(shape.p, shape.q)))
    }
  }

  clear(): void {
    for (const lines of [...this.helpers]) {
      lines.removeFromParent()
      lines.dispose()
    }
    this.helpers.length = 0
  }

  private add(bodies: Bodies, link: number, box: Box3): void {
    const lines = new Box3Helper(box.clone().expandByScalar(0.006), new Color(ACCENT))
    const material = lines.material as LineBasicMaterial
    material.transparent = true
    material.opacity = 0.85
    lines.raycast = () => undefined
    bodies.body(link).add(lines)
    this.helpers.push(lines)
  }
}
