// The name of each robot and object, above it.
import { Box3, CanvasTexture, Sprite, SpriteMaterial, SRGBColorSpace } from 'three'
import type { App, Layer, World } from '../app'

const MOST = 200 // names; more would hide the world
const HEIGHT = 44 // px of the picture

let labels: { group: number; sprite: Sprite }[] = []
let isOn = false

function label(text: string): Sprite {
  const canvas = document.createElement('canvas')
  const pen = canvas.getContext('2d') as CanvasRenderingContext2D
  const font = '500 26px system-ui, sans-serif'
  pen.font = font
  canvas.width = Math.ceil(pen.measureText(text).width) + 28
  canvas.height = HEIGHT
  pen.font = font
  pen.fillStyle = 'rgba(16, 21, 28, 0.78)'
  pen.beginPath()
  pen.roundRect(0, 0, canvas.width, HEIGHT, 12)
  pen.fill()
  pen.fillStyle = '#e8eef5'
  pen.textBaseline = 'middle'
  pen.fillText(text, 14, HEIGHT / 2 + 1)
  const map = new CanvasTexture(canvas)
  map.colorSpace = SRGBColorSpace
  const sprite = new Sprite(new SpriteMaterial({ map, depthTest: false, transparent: true, sizeAttenuation: false, fog: false, toneMapped: false }))
  const size = 0.034
  sprite.scale.set((size * canvas.width) / HEIGHT, size, 1)
  sprite.center.set(0.5, 0)
  sprite.renderOrder = 40
  sprite.raycast = () => undefined
  return sprite
}

function clear(): void {
  for (const { sprite } of labels) {
    sprite.removeFromParent()
    sprite.material.map?.dispose()
    sprite.material.dispose()
  }
  labels = []
}

function build(app: App, world: World | null): void {
  clear()
  if (!isOn || !world) return
  world.groups.slice(0, MOST).forEach((group, index) => {
    if (group.name === '') return
    const sprite = label(group.name)
    labels.push({ group: index, sprite })
    app.view.scene.add(sprite)
  })
}

const layer: Layer = {
  id: 'names',
  title: 'Names',
  order: 90,
  on: false,
  create() {},
  world(app, world) {
    build(app, world)
  },
  show(app, on) {
    isOn = on
    build(app, app.world)
  },
  frame(app) {
    const boxes = (app.world?.groups ?? []).slice(0, MOST).map(() => new Box3())
    app.world?.links.forEach((link, i) => boxes[link.group]?.union(app.view.box(i)))
    for (const { group, sprite } of labels) {
      const box = boxes[group] ?? new Box3()
      sprite.visible = !box.isEmpty()
      if (sprite.visible) sprite.position.set((box.min.x + box.max.x) / 2, (box.min.y + box.max.y) / 2, box.max.z + 0.06)
    }
  },
}
export default layer
