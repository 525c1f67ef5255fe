import type { Layer } from '../app'

const layer: Layer = {
  id: 'shadows',
  title: 'Shadows',
  order: 10,
  on: true,
  isCostly: true,
  create() {},
  show(app, on) {
    app.view.setShadows(on)
  },
}
export default layer
