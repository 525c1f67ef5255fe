// Objects: adding one of simple shape, and moving, raising, lowering or removing those that are there.
import type { App, Panel, Vec3, World } from '../app'
import {
  button,
  commands,
  field,
  fixed,
  h,
  icon,
  iconButton,
  icons,
  number,
  permission,
  pose,
  quote,
  rollPitchYaw,
  rootLink,
  select,
  setOptions,
  setText,
  tell,
  throttle,
  write,
} from '../ui'

// Sizes as a scene writes them, with what they begin at, and how far the shape reaches down from its middle.
const kinds: Record<string, { sizes: [string, number][]; half: (s: number[]) => number }> = {
  box: {
    sizes: [
      ['length x', 0.3],
      ['width y', 0.3],
      ['height z', 0.3],
    ],
    half: (s) => s[2] / 2,
  },
  sphere: { sizes: [['radius', 0.15]], half: (s) => s[0] },
  cylinder: {
    sizes: [
      ['radius', 0.12],
      ['length', 0.3],
    ],
    half: (s) => s[1] / 2,
  },
  capsule: {
    sizes: [
      ['radius', 0.1],
      ['straight part', 0.2],
    ],
    half: (s) => s[0] + s[1] / 2,
  },
  cone: {
    sizes: [
      ['base radius', 0.15],
      ['height', 0.3],
    ],
    half: (s) => s[1] / 2,
  },
  ellipsoid: {
    sizes: [
      ['half axis x', 0.2],
      ['half axis y', 0.15],
      ['half axis z', 0.1],
    ],
    half: (s) => s[2],
  },
}
const AHEAD = 1.6 // m in front of a robot's root link
const MOST = 200 // rows of the list

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  let picked: Vec3 | null = null

  // ---- adding
  const kind = select('add-kind', Object.keys(kinds), { 'aria-label': 'Kind' })
  const name = h('input', { test: 'add-name', placeholder: 'name', 'aria-label': 'Name', maxlength: 60 })
  const sizes = h('div', { class: 'three', test: 'add-sizes' })
  const by = select(
    'add-by',
    [
      ['mass', 'Mass, kg'],
      ['density', 'Density, kg/m³'],
    ],
    { 'aria-label': 'Mass or density' },
  )
  const weight = number('add-weight', 5, { min: 0, 'aria-label': 'Mass or density' })
  const surface = select('add-surface', [['', 'none']], { 'aria-label': 'Surface' })
  const colour = h('input', { type: 'color', value: '#d9822b', test: 'add-colour', 'aria-label': 'Colour' })
  const where = select(
    'add-where',
    [
      ['front', 'In front of a robot'],
      ['picked', 'At a picked point'],
      ['typed', 'As typed'],
    ],
    { 'aria-label': 'Place' },
  )
  const robot = select('add-robot', [], { 'aria-label': 'Robot' })
  const pick = button('Pick in the view', 'add-pick', () => pickPoint())
  const at = ['x', 'y', 'z'].map((axis) => number(`add-${axis}`, 0, { 'aria-label': axis, title: axis }))
  const typed = h('div', { class: 'three' }, ...at)
  const whereMore = h('div', { class: 'line' }, robot, pick)
  const isFixed = h('input', { type: 'checkbox', class: 'switch', role: 'switch', test: 'add-fixed' })
  const hint = h('small', { class: 'dim', test: 'add-hint' })

  function drawKind(): void {
    sizes.replaceChildren(
      ...kinds[kind.value].sizes.map(([label, value], i) =>
        h('label', { class: 'stack' }, h('small', {}, label), number(`add-size-${i}`, value, { min: 0.001 })),
      ),
    )
  }
  function drawWhere(): void {
    robot.hidden = where.value !== 'front' || robot.options.length < 2
    pick.hidden = where.value !== 'picked'
    typed.hidden = where.value !== 'typed'
    whereMore.hidden = robot.hidden && pick.hidden
    const text = {
      front: 'It falls from a little above.',
      picked: picked ? `At ${picked.map((v) => fixed(v, 2)).join('  ')}` : 'Press, then click on the ground.',
      typed: 'x, y, z of its middle, in metres.',
    }
    setText(hint, text[where.value as keyof typeof text])
  }
  // The next click in the view gives the place, and does nothing else.
  function pickPoint(): void {
    const canvas = app.view.canvas
    canvas.style.cursor = 'crosshair'
    pick.setAttribute('aria-pressed', 'true')
    const stop = (event: Event) => event.stopImmediatePropagation()
    const kept = ['pointerdown', 'pointermove', 'pointerup', 'mousedown', 'mouseup', 'dblclick'] as const
    const end = () => {
      canvas.style.cursor = ''
      pick.setAttribute('aria-pressed', 'false')
      for (const type of kept) removeEventListener(type, guard, true)
      removeEventListener('click', take, true)
      removeEventListener('keydown', leave, true)
    }
    const guard = (event: Event) => event.target === canvas && stop(event)
    const take = (event: MouseEvent) => {
      if (event.target !== canvas) return
      stop(event)
      end()
      const frame = canvas.getBoundingClientRect()
      const hit = app.view.pick(event.clientX - frame.left, event.clientY - frame.top)
      if (hit) picked = hit.point
      else app.emit('toast', { text: 'There is nothing at that place.', bad: true })
      drawWhere()
    }
    const leave = (event: KeyboardEvent) => event.key === 'Escape' && end()
    for (const type of kept) addEventListener(type, guard, true)
    addEventListener('click', take, true)
    addEventListener('keydown', leave, true)
  }
  function freeName(world: World): string {
    const used = new Set([...world.groups.map((g) => g.name), ...world.shapes.map((s) => s.name ?? ''), ...world.links.map((l) => l.name)])
    for (let n = 1; ; n++) if (!used.has(`${kind.value}${n}`)) return `${kind.value}${n}`
  }
  // The middle of the new object; null when there is no such place.
  function place(world: World, half: number): Vec3 | null {
    if (where.value === 'typed') return at.map((input) => input.valueAsNumber) as Vec3
    if (where.value === 'picked') return picked && [picked[0], picked[1], picked[2] + half + 0.002]
    const group = world.groups.findIndex((g) => g.name === robot.value)
    const there = group < 0 ? null : pose(app, rootLink(world, group))
    if (!there) return null
    const yaw = rollPitchYaw(there.q)[2]
    return [there.p[0] + AHEAD * Math.cos(yaw), there.p[1] + AHEAD * Math.sin(yaw), there.p[2] + half + 0.3]
  }
  function add(): void {
    const world = app.world
    if (!world) return
    const inputs = [...sizes.querySelectorAll('input')]
    const size = inputs.map((input) => input.valueAsNumber)
    const bad = [...inputs, weight, ...(where.value === 'typed' ? at : [])].find((input) => !Number.isFinite(input.valueAsNumber))
    if (bad) {
      bad.focus()
      app.emit('toast', { text: 'A number is missing.', bad: true })
      return
    }
    const middle = place(world, kinds[kind.value].half(size))
    if (!middle) {
      app.emit('toast', {
        text: where.value === 'picked' ? 'Pick a place in the view first.' : 'There is no robot to put it in front of.',
        bad: true,
      })
      return
    }
    const chosen = name.value.trim().replace(/\s+/g, '-') || freeName(world)
    const rgb = [1, 3, 5].map((i) => (parseInt(colour.value.slice(i, i + 2), 16) / 255).toFixed(3))
    const words = [
      'add',
      kind.value,
      chosen,
      `size=${size.map(write).join(',')}`,
      `at=${middle.map((v) => write(Number(v.toFixed(4)))).join(',')}`,
      `${by.value}=${write(weight.valueAsNumber)}`,
      ...(surface.value ? [`surface=${quote(surface.value)}`] : []),
      `rgba=${rgb.join(',')},1`,
      ...(isFixed.checked ? ['fixed=true'] : []),
    ]
    tell(app, words.join(' '), () => (name.value = ''))
  }
  by.addEventListener('change', () => (weight.value = by.value === 'mass' ? '5' : '1000'))
  kind.addEventListener('change', drawKind)
  where.addEventListener('change', drawWhere)
  drawKind()
  drawWhere()

  // ---- those that are there
  const filter = h('input', { type: 'search', test: 'object-filter', placeholder: 'Filter', 'aria-label': 'Filter of objects' })
  const step = number('object-step', 0.1, { class: 'short', min: 0.001, 'aria-label': 'Step of raising and lowering, metres' })
  const list = h('ul', { class: 'list', test: 'objects' })
  const more = h('small', { class: 'dim' })
  let places: (() => void)[] = []
  let handled = -1

  function drawList(): void {
    if (!visible || !app.world) return
    const world = app.world
    const words = filter.value.toLowerCase()
    const objects = [
      ...world.groups.flatMap((g, i) =>
        g.robot ? [] : [{ name: g.name, link: rootLink(world, i), select: { kind: 'group' as const, index: i }, p: null as Vec3 | null }],
      ),
      ...world.shapes.flatMap((s, i) =>
        s.link < 0 && s.name ? [{ name: s.name, link: -1, select: { kind: 'shape' as const, index: i }, p: s.p }] : [],
      ),
    ].filter((o) => o.name.toLowerCase().includes(words))
    places = []
    list.replaceChildren(
      ...objects.slice(0, MOST).map((o) => {
        const where = h('small')
        const draw = () => setText(where, (o.p ?? pose(app, o.link)?.p ?? []).map((v) => fixed(v, 2)).join(' '))
        if (o.p) draw()
        else places.push(draw)
        const by = (word: string) => () => tell(app, `${word} ${quote(o.name)} ${write(Math.abs(step.valueAsNumber) || 0.1)}`)
        return h(
          'li',
          { test: `object-${o.name}` },
          h(
            'button',
            {
              type: 'button',
              class: 'plain name',
              test: `select-${o.name}`,
              title: 'Select and look at it',
              onclick: () => go(o.select, o.p ?? pose(app, o.link)?.p),
            },
            o.name,
            where,
          ),
          o.link >= 0
            ? iconButton(icons.move, `Move ${o.name} with a handle`, `move-${o.name}`, () => toggleHandle(o.name, o.link), {
                'aria-pressed': String(handled === o.link),
              })
            : null,
          iconButton(icons.up, `Raise ${o.name}`, `raise-${o.name}`, by('raise')),
          iconButton(icons.down, `Lower ${o.name}`, `lower-${o.name}`, by('lower')),
          iconButton(icons.bin, `Remove ${o.name}`, `remove-${o.name}`, () => tell(app, `remove ${quote(o.name)}`)),
        )
      }),
    )
    setText(more, objects.length > MOST ? `${objects.length - MOST} more: use the filter` : objects.length ? '' : 'No objects.')
    for (const draw of places) draw()
  }
  function go(selection: { kind: 'group' | 'shape'; index: number }, p: Vec3 | undefined): void {
    app.select(selection)
    if (p) app.view.lookAt(p)
  }
  function toggleHandle(objectName: string, link: number): void {
    handled = handled === link ? -1 : link
    app.view.showHandle(handled < 0 ? null : handled, (p, q) =>
      tell(app, `move ${quote(objectName)} ${[...p, ...rollPitchYaw(q)].map(write).join(' ')}`),
    )
    drawList()
  }
  filter.addEventListener('input', drawList)

  const form = h('form', { class: 'commands', test: 'add-form' })
  form.append(
    h('div', { class: 'line' }, kind, name),
    sizes,
    h('div', { class: 'line' }, by, weight),
    field('Surface', surface),
    field('Colour', colour),
    field('Place', where),
    whereMore,
    typed,
    hint,
    h('label', { class: 'choice' }, isFixed, h('span', {}, 'Stands still')),
    h(
      'button',
      { type: 'submit', class: 'main', test: 'add' },
      h('span', { class: 'line', style: 'justify-content: center' }, icon(icons.plus, 16), 'Add object'),
    ),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (permission(app).allowed) add()
  })
  root.append(
    commands(form),
    h('h3', {}, 'In the world'),
    commands(h('div', { class: 'line' }, filter, h('small', {}, 'step'), step, h('span', { class: 'unit' }, 'm')), list),
    more,
  )

  app.on('world', (world) => {
    handled = -1
    setOptions(surface, [['', 'none'], ...world.materials.map((m) => [m.name, m.name] as [string, string])])
    setOptions(
      robot,
      world.groups.filter((g) => g.robot).map((g) => g.name),
    )
    if (!robot.options.length && where.value === 'front') where.value = 'typed'
    drawWhere()
    drawList()
  })
  const soon = throttle(200, () => {
    if (visible) for (const draw of places) draw()
  })
  app.on('poses', soon)
  look = () => {
    if (!visible && handled >= 0) {
      handled = -1
      app.view.showHandle(null)
    }
    drawList()
  }
}

export default {
  id: 'objects',
  title: 'Objects',
  order: 60,
  icon: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
