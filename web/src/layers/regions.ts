// Regions of the ground, tinted by what they are made of, with a legend.
import type { App, Layer } from '../app'
import { h } from '../ui'
import { materialColor, regionMaterial, regionStrength } from '../view/regions'

const SHARE = 0.5 // of the tint
const legend = h('div', { class: 'legend', test: 'legend-regions' })
let isOn = false

function tell(app: App): void {
  const world = app.world
  const names = world?.regions.map((region, i) => {
    const material = regionMaterial(world, app.regions, i)
    return world.shapes[region.shape]?.surface === material ? '' : material
  })
  const shown = [...new Set(names)].filter((name) => name !== '')
  legend.hidden = !isOn || shown.length === 0
  legend.replaceChildren(
    ...shown.map((name) => {
      const swatch = h('span', { class: 'swatch' })
      if (world) swatch.style.background = materialColor(world, name)
      return h('div', { 'data-material': name }, swatch, name)
    }),
  )
}

const layer: Layer = {
  id: 'regions',
  title: 'Regions',
  order: 25,
  on: true,
  create(app) {
    app.view.canvas.parentElement?.append(legend)
    app.on('pairs', () => tell(app))
  },
  world(app) {
    tell(app)
  },
  show(app, on) {
    isOn = on
    regionStrength.value = on ? SHARE : 0
    tell(app)
  },
}
export default layer
