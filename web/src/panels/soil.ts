// Soil: what each soil of the scene is like, with sliders; what the regions are made of; and how deep wheels and feet stand in it.
import './soil.css'
import type { App, Panel, SoilRow, Sunk } from '../app'
import { createBox, type Box, type Knob } from '../knobs'
import { commands, fixed, h, quote, select, setOptions, setText, show, signal, tell } from '../ui'

// Sliders go over what soils are like; a number beyond them can be typed.
const knobs: Knob[] = [
  { key: 'kc', label: 'Cohesive kc', low: 10, high: 1e6, unit: 'N/m^(n+1)', log: true, note: 'cohesive modulus of sinkage' },
  { key: 'kphi', label: 'Frictional kφ', low: 1e4, high: 1e8, unit: 'N/m^(n+2)', log: true, note: 'frictional modulus of sinkage' },
  { key: 'n', label: 'Exponent n', low: 0.2, high: 2, note: 'of sinkage' },
  { key: 'cohesion', label: 'Cohesion', low: 0, high: 10e3, unit: 'Pa' },
  { key: 'friction_angle', label: 'Friction angle', low: 0, high: 0.9, unit: 'rad', note: 'of internal friction' },
  { key: 'shear_x', label: 'Shear along', low: 0.001, high: 0.1, unit: 'm', note: 'shear deformation modulus along the wheel' },
  { key: 'shear_y', label: 'Shear across', low: 0.001, high: 0.1, unit: 'm', note: 'shear deformation modulus across the wheel' },
  { key: 'shear_radius', label: 'Shear radius', low: 0, high: 1, unit: 'm', note: 'wheel radius for which the shear moduli hold: of smaller wheels they are smaller in proportion; 0: of every wheel the same' },
  { key: 'slip_sinkage', label: 'Slip sinkage', low: 0, high: 2, note: 'layer of soil that a slipping rim carries away, over the depth that it presses; 0: wheels do not dig' },
  { key: 'density', label: 'Density', low: 100, high: 3000, unit: 'kg/m³', note: 'in bulk' },
  { key: 'exit_ratio', label: 'Exit ratio', low: 0, high: 1.1, note: 'how far the soil comes up again behind a wheel: 0 stays pressed, 1 flows back' },
  { key: 'repose_angle', label: 'Repose angle', low: 0, high: 1.2, unit: 'rad', note: 'slopes stop flowing at this angle' },
  { key: 'critical_angle', label: 'Critical angle', low: 0, high: 1.2, unit: 'rad', note: 'and begin to flow at this one' },
  { key: 'max_curvature', label: 'Max curvature', low: 0, high: 200, unit: '1/m', note: 'spikes and notches of more flow level; 0: 2/3 of the slope of repose over the width of a column' },
  { key: 'compaction', label: 'Compaction', low: 0, high: 1, note: 'share of what is pressed that does not come up elsewhere' },
]

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const soils = h('div', { class: 'commands', test: 'soils' })
  const regions = h('div', { class: 'regions', test: 'regions' })
  const sunk = h('table', { class: 'sunk', test: 'sunk' })
  const parts = { regions: h('h3', {}, 'Regions'), sunk: h('h3', {}, 'In the soil') }
  const boxes = new Map<string, Box>()
  root.append(commands(soils, parts.regions, regions), parts.sunk, sunk)

  function draw(): void {
    if (!visible) return
    const elements = app.soils.map((row) => {
      let box = boxes.get(row.name)
      if (!box) boxes.set(row.name, (box = makeBox(app, row)))
      box.fill(row.values)
      return box.details
    })
    if (elements.length !== soils.children.length || elements.some((e, i) => e !== soils.children[i])) soils.replaceChildren(...elements)
    drawRegions()
    drawSunk()
  }

  // Regions stand in the order in which they lie over each other; one may be made of any material.
  const choices: HTMLSelectElement[] = []
  function drawRegions(): void {
    parts.regions.hidden = regions.hidden = app.regions.length === 0
    const materials = app.world?.materials.map((m) => m.name) ?? []
    app.regions.forEach((region, i) => {
      if (!choices[i] || choices[i].dataset.region !== region.name) {
        const choice = select(`region-${region.name}`, [], { 'aria-label': `What ${region.name} is made of`, 'data-region': region.name })
        choice.addEventListener('change', () => tell(app, `region ${quote(region.name)} ${quote(choice.value)}`))
        choices[i] = choice
      }
      setOptions(choices[i], materials.includes(region.material) ? materials : [region.material, ...materials])
      if (document.activeElement !== choices[i]) choices[i].value = region.material
    })
    choices.length = app.regions.length
    const rows = choices.map((choice) => choice.parentElement ?? h('label', { class: 'field' }, h('span', { class: 'field-label' }, choice.dataset.region ?? ''), choice))
    if (rows.length !== regions.children.length || rows.some((e, i) => e !== regions.children[i])) regions.replaceChildren(...rows)
  }

  // One row per link that touches soil, in the order of the links. Rows stay while their numbers change; only those of links that came or went are
  // added or removed.
  const rows = new Map<number, HTMLTableRowElement>()
  const head = h('tr', {}, ...columns.map((name) => h('th', {}, name)))
  function drawSunk(): void {
    const links = perLink(app.status?.sunk ?? [])
    const world = app.world
    parts.sunk.hidden = sunk.hidden = links.length === 0
    if (!world) return
    for (const link of rows.keys()) if (!links.some((one) => one.link === link)) rows.delete(link)
    for (const one of links) {
      if (!rows.has(one.link)) {
        const name = world.links[one.link]?.name ?? ''
        const cells = columns.map(() => h('td'))
        // Of a robot the link is of interest, of an object its name: many stones have a link "stone".
        setText(cells[0], (world.groups[world.links[one.link]?.group]?.robot ? name.split('/').pop() : name.split('/')[0]) ?? '')
        rows.set(one.link, h('tr', { test: `sunk-${name}`, title: name }, ...cells))
      }
      fillRow(rows.get(one.link)!, one)
    }
    const isWanted = new Set<Element>([head, ...rows.values()])
    for (const row of [...sunk.rows]) if (!isWanted.has(row)) row.remove()
    const wanted = [head, ...links.map((one) => rows.get(one.link)!)]
    wanted.forEach((row, i) => row !== sunk.rows[i] && sunk.insertBefore(row, sunk.rows[i] ?? null))
  }
  app.on('world', () => {
    boxes.clear()
    rows.clear()
    draw()
  })
  app.on('pairs', () => {
    signal('absent', { panel: 'soil', absent: app.soils.length === 0 && app.regions.length === 0 })
    draw()
  })
  app.on('status', () => visible && drawSunk())
  look = draw
}

const columns = ['', 'sinkage', 'slip', 'slip angle', 'load']

// A link may touch soil in several places, as a stone does with its corners: the deepest of them, and the force of all.
function perLink(contacts: Sunk[]): Sunk[] {
  const links = new Map<number, Sunk>()
  for (const one of contacts) {
    const known = links.get(one.link)
    if (!known) links.set(one.link, { ...one })
    else {
      const slip = one.wheel && !known.wheel ? one : known
      links.set(one.link, {
        ...slip,
        buried: one.buried || known.buried,
        sinkage: Math.max(one.sinkage, known.sinkage),
        force: [one.force[0] + known.force[0], one.force[1] + known.force[1], one.force[2] + known.force[2]],
      })
    }
  }
  return [...links.values()].sort((a, b) => a.link - b.link)
}

function fillRow(row: HTMLTableRowElement, one: Sunk): void {
  const texts = [
    `${fixed(1000 * one.sinkage, 1)} mm`,
    one.wheel ? fixed(one.slip, 2) : '–',
    one.wheel ? `${fixed((180 / Math.PI) * one.slip_angle, 1)}°` : '–',
    `${fixed(one.force[2], 0)} N`,
  ]
  texts.forEach((text, i) => setText(row.cells[i + 1], text))
  row.cells[1].classList.toggle('bad', one.buried)
}

function makeBox(app: App, first: SoilRow): Box {
  const { name } = first
  const options = {
    kind: 'soil',
    test: name,
    title: name,
    owner: name,
    command: `soil ${quote(name)}`,
    knobs,
    brief: (v: Record<string, number>) => `c ${show(v.cohesion, 3)} Pa  φ ${fixed((180 / Math.PI) * (v.friction_angle ?? NaN), 0)}°`,
    now: () => app.soils.find((s) => s.name === name)?.values,
    // A slope begins to flow at no smaller an angle than that at which it stops.
    link(key: string, value: number, v: Record<string, number>): [string, number][] {
      if (key === 'repose_angle' && v.critical_angle < value) return [['critical_angle', value]]
      if (key === 'critical_angle' && v.repose_angle > value) return [['repose_angle', value]]
      return []
    },
  }
  return createBox(app, options, first.values)
}

export default {
  id: 'soil',
  title: 'Soil',
  order: 52,
  isHidden: true,
  icon: 'M3 9c3-2 6 2 9 0s6 2 9 0M3 14h18M6 17.5h.01M11 18h.01M16 17h.01M8.5 21h.01M14 21h.01',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
