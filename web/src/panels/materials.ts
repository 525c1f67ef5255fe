// How materials touch: one box per pair. Changes are sent while one slides.
import type { App, PairRow, Panel } from '../app'
import { createBox, type Box, type Knob } from '../knobs'
import { commands, h, quote, select, setOptions, show } from '../ui'

const knobs: Knob[] = [
  { key: 'static-friction', label: 'Static friction', low: 0, high: 1.5 },
  { key: 'kinetic-friction', label: 'Kinetic friction', low: 0, high: 1.5 },
  { key: 'restitution', label: 'Restitution', low: 0, high: 1 },
  { key: 'rolling-length', label: 'Rolling length', low: 0, high: 0.05, unit: 'm' },
  { key: 'torsion-radius', label: 'Torsion radius', low: 0, high: 0.2, unit: 'm', note: '0: no torsional friction' },
  { key: 'stiffness', label: 'Stiffness', low: 1e3, high: 1e9, unit: 'N/m', log: true, note: '0: from the weight that it carries' },
  { key: 'damping-ratio', label: 'Damping ratio', low: 0, high: 3 },
  { key: 'viscous', label: 'Viscous', low: 0, high: 50, unit: 'N s/m' },
  { key: 'transition-speed', label: 'Transition speed', low: 0, high: 0.5, unit: 'm/s', note: '0: kinetic friction is the same at every speed' },
]

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const filter = select('material-filter', [['', 'All materials']], { 'aria-label': 'Material' })
  const list = h('div', { class: 'commands', test: 'pairs' })
  const empty = h('p', { class: 'hint' }, 'No pair of materials in this scene.')
  const boxes = new Map<string, Box>()
  root.append(h('div', { class: 'line' }, filter), empty, commands(list))

  function draw(): void {
    if (!visible) return
    const names = [...new Set(app.pairs.flatMap((p) => [p.a, p.b]))].sort()
    setOptions(filter, [['', 'All materials'], ...names.map((n) => [n, n] as [string, string])])
    const shown = app.pairs.filter((p) => !filter.value || p.a === filter.value || p.b === filter.value)
    empty.hidden = shown.length > 0
    const named = new Set(app.world?.pairs.flatMap((p) => [`${p.a}\n${p.b}`, `${p.b}\n${p.a}`]))
    const rank = (row: PairRow) => (named.has(`${row.a}\n${row.b}`) ? 0 : row.a === 'default' || row.b === 'default' ? 2 : 1)
    shown.sort((p, q) => rank(p) - rank(q))
    const elements = shown.map((row) => {
      const key = `${row.a}\n${row.b}`
      let box = boxes.get(key)
      if (!box) boxes.set(key, (box = makeBox(app, row)))
      box.fill(row.values)
      box.details.classList.toggle('unnamed', rank(row) > 0)
      return box.details
    })
    if (elements.length !== list.children.length || elements.some((e, i) => e !== list.children[i])) list.replaceChildren(...elements)
  }
  filter.addEventListener('change', draw)
  app.on('pairs', draw)
  app.on('world', draw)
  app.on('select', (selection) => {
    const name = selection?.kind === 'material' ? app.world?.materials[selection.index]?.name : undefined
    if (!name) return
    filter.value = name
    draw()
  })
  look = draw
}

function makeBox(app: App, first: PairRow): Box {
  const { a, b, values } = first
  const options = {
    kind: 'pair',
    test: `${a}-${b}`,
    title: `${a} – ${b}`,
    owner: `${a} and ${b}`,
    command: `pair ${quote(a)} ${quote(b)}`,
    knobs,
    brief: (v: Record<string, number>) => `μ ${show(v['static-friction'], 3)} / ${show(v['kinetic-friction'], 3)}`,
    now: () => app.pairs.find((p) => p.a === a && p.b === b)?.values,
    // Kinetic friction is at most the static one: whichever is moved takes the other along.
    link(key: string, value: number, v: Record<string, number>): [string, number][] {
      if (key === 'static-friction' && v['kinetic-friction'] > value) return [['kinetic-friction', value]]
      if (key === 'kinetic-friction' && v['static-friction'] < value) return [['static-friction', value]]
      return []
    },
  }
  return createBox(app, options, values)
}

export default {
  id: 'materials',
  title: 'Materials',
  order: 50,
  icon: 'M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11zM9 15a3 3 0 0 0 3 3',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
