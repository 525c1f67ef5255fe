// Click or tap selects, double click looks at it.
import type { App, Selection } from '../app'
import type { WorldView } from './view'

const STILL = 6 // px: what moves farther is a drag
const SHORT = 600 // ms

export function watchPointer(app: App, view: WorldView): void {
  const { canvas } = view
  let down: { x: number; y: number; time: number } | null = null
  let fingers = 0

  canvas.addEventListener('pointerdown', (event) => {
    fingers++
    down = event.isPrimary && event.button === 0 && fingers === 1 ? { x: event.clientX, y: event.clientY, time: event.timeStamp } : null
  })
  canvas.addEventListener('pointercancel', () => {
    fingers = 0
    down = null
  })
  // The handle may end its drag before this is called: that it was held is seen while the pointer moves.
  canvas.addEventListener('pointermove', () => {
    if (view.isHandleHeld) down = null
  })
  canvas.addEventListener('pointerup', (event) => {
    fingers = Math.max(0, fingers - 1)
    const from = down
    down = null
    if (!from || view.isHandleHeld || event.timeStamp - from.time > SHORT) return
    if (Math.hypot(event.clientX - from.x, event.clientY - from.y) > STILL) return
    app.select(at(event))
  })
  canvas.addEventListener('dblclick', (event) => {
    const selection = at(event)
    if (!selection) return
    const hit = hitAt(event)
    // Ground is too large to be looked at as a whole: the point that was hit is.
    const kind = hit ? app.world?.shapes[hit.shape]?.kind : undefined
    if (hit && (kind === 'height-field' || kind === 'half-space')) view.lookAt(hit.point)
    else view.focus(selection)
  })

  function hitAt(event: MouseEvent): ReturnType<WorldView['pick']> {
    const box = canvas.getBoundingClientRect()
    return view.pick(event.clientX - box.left, event.clientY - box.top)
  }

  function at(event: MouseEvent): Selection | null {
    const hit = hitAt(event)
    if (!hit) return null
    return hit.link >= 0 ? { kind: 'link', index: hit.link } : { kind: 'shape', index: hit.shape }
  }
}
