// One plot of the scope: uPlot draws it; the legend, the zoom by wheel and pinch and the picture for export are here.
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { fixed, h, icons, iconButton, setText, show } from '../../ui'
import type { Rings } from './rings'

const colours = ['#5aa9ff', '#ff9d4d', '#5fd08a', '#e879c0', '#f2d14b', '#9d8cff', '#4fd3d9', '#ff7b72', '#a9c34f', '#c9a27e']

interface Uses {
  changed: () => void
  chosen: () => void
  closed: () => void
  dropped: (names: string[]) => void
  held: () => void
}

export class Plot {
  readonly element: HTMLElement
  readonly values: string[] = []
  isHeld = false // somebody zoomed: it stays where it is
  private readonly colour = new Map<string, string>()
  private readonly area = h('div', { class: 'plot-area', test: 'plot-area' })
  private readonly empty = h('div', { class: 'plot-empty' }, 'Press + beside a value in the tree, drag it here, or type its name.')
  private readonly legend = h('div', { class: 'legend', test: 'legend' })
  private readonly cursor = h('span', { class: 'cursor' })
  private readonly cells = new Map<string, HTMLElement>()
  private u: uPlot | null = null
  private range: [number, number] = [0, 1]
  private newest = 0
  private isOver = false // the cursor is in the plot

  constructor(
    private readonly rings: Rings,
    private readonly uses: Uses,
  ) {
    this.area.append(this.empty)
    this.element = h('div', { class: 'plot', test: 'plot' }, this.legend, this.area)
    this.element.addEventListener('pointerdown', () => uses.chosen())
    this.element.addEventListener('dragover', (event) => {
      event.preventDefault()
      this.element.classList.add('drop')
    })
    this.element.addEventListener('dragleave', () => this.element.classList.remove('drop'))
    this.element.addEventListener('drop', (event) => {
      event.preventDefault()
      this.element.classList.remove('drop')
      const text = event.dataTransfer?.getData('application/x-understudy-values') ?? ''
      if (text) uses.dropped(text.split('\n'))
    })
    new ResizeObserver(() => this.fit()).observe(this.area)
    this.zoomByWheelAndPinch()
    this.drawLegend()
  }

  add(name: string): void {
    if (this.values.includes(name)) return
    const used = new Set(this.values.map((v) => this.colour.get(v)))
    this.colour.set(name, colours.find((c) => !used.has(c)) ?? colours[this.values.length % colours.length])
    this.values.push(name)
    this.changed()
  }
  remove(name: string): void {
    this.values.splice(this.values.indexOf(name), 1)
    this.changed()
  }
  private changed(): void {
    this.drawLegend()
    this.rebuild()
    this.uses.changed()
  }

  // Back to the newest values.
  release(): void {
    this.isHeld = false
    this.uses.held()
    if (this.u) this.draw(this.seconds, false)
  }
  private hold(range: [number, number]): void {
    this.range = range
    this.isHeld = true
    this.uses.held()
    this.draw(this.seconds, true)
  }

  // ---- legend: values at the cursor, or the newest ones
  private drawLegend(): void {
    this.cells.clear()
    const items = this.values.map((name) => {
      const cell = h('b', { test: `legend-${name}` }, '–')
      this.cells.set(name, cell)
      return h(
        'span',
        { class: 'legend-item' },
        h('i', { style: `background: ${this.colour.get(name)}` }),
        name,
        cell,
        iconButton(icons.close, `Remove ${name}`, `unplot-${name}`, () => this.remove(name)),
      )
    })
    const close = iconButton(icons.bin, 'Close this plot', 'plot-close', () => this.uses.closed(), { class: 'plain plot-close' })
    this.legend.replaceChildren(...items, this.cursor, close)
    this.empty.hidden = this.values.length > 0
  }
  private drawNumbers(): void {
    const u = this.u
    const at = this.isOver && u?.cursor.idx != null ? u.cursor.idx : null
    for (const [k, name] of this.values.entries()) {
      const value = at !== null ? u!.data[k + 1]?.[at] : this.rings.count ? this.rings.valueAt(name, this.rings.count - 1) : undefined
      setText(this.cells.get(name)!, show(value ?? undefined, 5))
    }
    setText(this.cursor, at !== null ? `t ${fixed(u!.data[0][at], 3)} s` : '')
  }

  // ---- drawing
  private seconds = 10
  draw(seconds: number, isPaused: boolean): void {
    this.seconds = seconds
    const count = this.rings.count
    if (!isPaused && count) this.newest = this.rings.timeAt(count - 1)
    const u = this.u ?? this.build()
    if (!u) return
    if (!this.isHeld) {
      const oldest = count ? this.rings.timeAt(0) : 0
      this.range = [seconds ? this.newest - seconds : oldest, Math.max(this.newest, oldest + 1e-6)]
    }
    const data = this.rings.columns(this.values, this.range[0], this.range[1], u.width)
    u.batch(() => {
      u.setData(data as uPlot.AlignedData, false)
      u.setScale('x', { min: this.range[0], max: this.range[1] })
    })
    this.drawNumbers()
  }
  rebuild(): void {
    this.u?.destroy()
    this.u = null
    this.draw(this.seconds, true)
  }
  private fit(): void {
    if (!this.u) return
    const { clientWidth: width, clientHeight: height } = this.area
    if (width && height) this.u.setSize({ width, height })
  }
  private build(): uPlot | null {
    const { clientWidth: width, clientHeight: height } = this.area
    if (!this.values.length || !width || !height) return null
    const style = getComputedStyle(this.element)
    const axis = { stroke: style.getPropertyValue('--dim'), grid: { stroke: style.getPropertyValue('--line'), width: 1 }, ticks: { show: false } }
    const u = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [8, 10, 0, 0],
        cursor: {
          drag: { x: true, y: false, setScale: false },
          points: { size: 6 },
          bind: { dblclick: () => () => (this.release(), null) },
        },
        scales: { x: { time: false }, y: { range: (_u, low, high) => roomAround(low, high) } },
        axes: [
          { ...axis, size: 28, space: 70, values: (_u, ticks) => ticks.map((t) => `${show(t, 6)}`) },
          { ...axis, size: 62, space: 26, values: (_u, ticks) => ticks.map((t) => show(t, 5)) },
        ],
        series: [{}, ...this.values.map((name) => ({ label: name, stroke: this.colour.get(name), width: 1.6, points: { show: false } }))],
        hooks: {
          setCursor: [() => this.drawNumbers()],
          setSelect: [
            (self) => {
              const { left, width: w } = self.select
              if (w > 4) this.hold([self.posToVal(left, 'x'), self.posToVal(left + w, 'x')])
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
            },
          ],
        },
      },
      [[], ...this.values.map(() => [])] as unknown as uPlot.AlignedData,
      this.area,
    )
    u.over.addEventListener('pointerenter', () => (this.isOver = true))
    u.over.addEventListener('pointerleave', () => (this.isOver = false))
    this.u = u
    return u
  }

  // ---- zoom about the pointer by wheel, about two fingers by pinch; one finger pulls the plot along
  private zoomByWheelAndPinch(): void {
    const timeAt = (clientX: number) => {
      const frame = this.u!.over.getBoundingClientRect()
      return this.u!.posToVal(clientX - frame.left, 'x')
    }
    this.area.addEventListener(
      'wheel',
      (event) => {
        if (!this.u || event.ctrlKey) return
        event.preventDefault()
        const [from, to] = this.range
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const by = (event.deltaX / this.u.over.clientWidth) * (to - from)
          this.hold([from + by, to + by])
          return
        }
        const middle = timeAt(event.clientX)
        const factor = Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.002)))
        const least = 1e-4 / (to - from)
        const f = Math.max(least, factor)
        this.hold([middle - (middle - from) * f, middle + (to - middle) * f])
      },
      { passive: false },
    )
    const fingers = new Map<number, number>()
    let start: { times: [number, number] } | null = null
    this.area.addEventListener('pointerdown', (event) => {
      if (event.pointerType !== 'touch' || !this.u) return
      fingers.set(event.pointerId, event.clientX)
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()]
        start = { times: [timeAt(a), timeAt(b)] }
      }
    })
    this.area.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId)
      if (before === undefined) return
      fingers.set(event.pointerId, event.clientX)
      if (fingers.size === 1 && this.u) {
        const [from, to] = this.range
        const by = ((before - event.clientX) / this.u.over.clientWidth) * (to - from)
        if (by !== 0) this.hold([from + by, to + by])
        return
      }
      if (!start || fingers.size !== 2 || !this.u) return
      const frame = this.u.over.getBoundingClientRect()
      const [a, b] = [...fingers.values()].map((x) => (x - frame.left) / frame.width)
      if (Math.abs(a - b) < 0.02) return
      const scale = (start.times[1] - start.times[0]) / (b - a)
      if (!(scale > 1e-4)) return
      const from = start.times[0] - a * scale
      this.hold([from, from + scale])
    })
    for (const end of ['pointerup', 'pointercancel', 'pointerleave'] as const) {
      this.area.addEventListener(end, (event) => {
        fingers.delete(event.pointerId)
        if (fingers.size < 2) start = null
      })
    }
    // Two quick taps of one finger that stays where it is are a double click.
    let tap: { x: number; time: number } | null = null
    let lastTap = -Infinity
    this.area.addEventListener('pointerdown', (event) => {
      if (event.pointerType === 'touch') tap = event.isPrimary ? { x: event.clientX, time: event.timeStamp } : null
    })
    this.area.addEventListener('pointerup', (event) => {
      if (!tap || event.timeStamp - tap.time > 250 || Math.abs(event.clientX - tap.x) > 8) return
      if (event.timeStamp - lastTap < 350) this.release()
      lastTap = event.timeStamp
      tap = null
    })
  }

  // The plot with its legend on the panel's ground.
  png(done: (blob: Blob) => void): void {
    if (!this.u) return
    const source = this.u.ctx.canvas
    const scale = source.width / this.u.width
    const line = 20 * scale
    const canvas = h('canvas', { width: source.width, height: source.height + line * this.values.length + 8 * scale })
    const context = canvas.getContext('2d')!
    const style = getComputedStyle(this.element)
    context.fillStyle = style.getPropertyValue('--panel')
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.font = `${13 * scale}px ${style.fontFamily}`
    this.values.forEach((name, i) => {
      context.fillStyle = this.colour.get(name)!
      context.fillRect(10 * scale, line * i + 8 * scale, 10 * scale, 10 * scale)
      context.fillStyle = style.getPropertyValue('--text')
      context.fillText(name, 26 * scale, line * i + 17 * scale)
    })
    context.drawImage(source, 0, line * this.values.length + 8 * scale)
    canvas.toBlob((blob) => blob && done(blob), 'image/png')
  }
}

// Some air above and below; a constant lies in the middle.
function roomAround(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [-1, 1]
  const span = high - low
  if (span < 1e-9 * Math.max(1, Math.abs(high))) {
    const room = Math.abs(high) * 0.1 || 1
    return [low - room, high + room]
  }
  return [low - 0.06 * span, high + 0.06 * span]
}
