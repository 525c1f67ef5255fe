// What is known of the selection, its pose as it moves, and what can be done with it.
import type { App, Panel, Selection, ShapeInfo, World } from '../app'
import { giveJoint, hint, label, slides } from '../joint'
import {
  button,
  commands,
  fixed,
  h,
  jointValues,
  number,
  pose,
  quote,
  rollPitchYaw,
  rootLink,
  row,
  setText,
  show,
  signal,
  tell,
  throttle,
  write,
} from '../ui'

let visible = false
let look = () => {}

const triple = (v: ArrayLike<number>, n = 3) => Array.from({ length: n }, (_, i) => show(v[i])).join('  ')

function create(app: App, root: HTMLElement): void {
  const title = h('strong', { test: 'properties-title' })
  const kind = h('small', { class: 'dim', test: 'properties-kind', style: 'margin-left: 8px' })
  const none = h('p', { class: 'hint' }, 'Nothing is selected. Click on something in the view or in the tree.')
  const head = h('div', {}, title, kind)
  const looks = h('div', { class: 'line' })
  const facts = h('dl', { class: 'facts', test: 'properties' })
  const step = number('properties-step', 0.1, { class: 'short', min: 0.001, 'aria-label': 'Step in metres' })
  const acts = h('div', { class: 'line' })
  const box = commands(acts)
  root.append(none, head, looks, box, facts)

  let live: (() => void)[] = []
  let watched: string[] = []
  let isHandled = false

  function fact(what: string, value: string | (() => string), unit = ''): void {
    const text = () => `${typeof value === 'string' ? value : value()}${unit ? ` ${unit}` : ''}`
    const cell = row(facts, what, text(), `property-${what.replaceAll(' ', '-')}`)
    if (typeof value !== 'string') live.push(() => setText(cell, text()))
  }
  // A value by name, with a way to the scope.
  function value(what: string, name: string, unit: string): void {
    watched.push(name)
    const text = h('span')
    const plus = button('+', `property-plot-${name}`, () => signal('plot', [name]), {
      class: 'plain',
      title: `Plot ${name}`,
      style: 'min-height: 22px; min-width: 22px; vertical-align: middle',
    })
    row(facts, what, h('span', {}, text, plus))
    live.push(() => setText(text, `${fixed(app.value(name), 4)} ${unit} `))
  }

  function draw(): void {
    live = []
    watched = []
    facts.replaceChildren()
    looks.replaceChildren()
    acts.replaceChildren()
    const world = app.world
    const s = app.selection
    const has = world !== null && s !== null && exists(world, s)
    none.hidden = has
    for (const part of [head, looks, box, facts]) part.hidden = !has
    if (isHandled) app.view.showHandle(null)
    isHandled = false
    if (visible && has) describe(world, s)
    app.watch('properties', visible ? watched : [])
    refresh()
  }
  const refresh = () => {
    for (const one of live) one()
  }

  function describe(world: World, s: Selection): void {
    setText(kind, s.kind)
    switch (s.kind) {
      case 'group':
        return describeGroup(world, s.index)
      case 'link':
        return describeLink(world, s.index)
      case 'joint':
        return describeJoint(world, s.index)
      case 'drive': {
        const drive = world.drives[s.index]
        setText(title, drive.name)
        value('torque', `${drive.name}.torque`, world.joints[drive.joint]?.type === 'prismatic' ? 'N' : 'N m')
        fact('kp', show(drive.kp))
        fact('kd', show(drive.kd))
        fact('limit', drive.limit ? show(drive.limit) : 'none')
        goTo('joint', drive.joint, world.joints[drive.joint]?.name)
        return
      }
      case 'shape':
        return describeShape(world, s.index)
      case 'material': {
        const material = world.materials[s.index]
        setText(title, material.name)
        for (const [key, text] of Object.entries(material.properties)) fact(key, String(text))
        fact('shapes', String(world.shapes.filter((shape) => shape.surface === material.name).length))
        looks.append(button('Open materials', 'open-materials', () => signal('open', 'materials')))
        return
      }
      case 'pair': {
        const pair = world.pairs[s.index]
        setText(title, `${pair.a ?? 'any'} – ${pair.b ?? 'any'}`)
        fact('model', pair.model)
        if (pair.fidelity) fact('fidelity', pair.fidelity)
        const values = app.pairs.find((p) => (p.a === pair.a && p.b === pair.b) || (p.a === pair.b && p.b === pair.a))?.values ?? {}
        for (const key of Object.keys(values)) fact(key, () => show(values[key]))
        looks.append(button('Open materials', 'open-materials', () => signal('open', 'materials')))
      }
    }
  }

  function describeGroup(world: World, index: number): void {
    const group = world.groups[index]
    setText(title, group.name)
    setText(kind, group.robot ? 'robot' : 'object')
    const link = rootLink(world, index)
    const links = world.links.filter((l) => l.group === index)
    addLooks(link)
    addActs(group.name, link, !group.robot)
    addPose(link)
    fact('mass', show(links.reduce((sum, l) => sum + l.mass, 0)), 'kg')
    fact('base', group.floating ? 'floating' : 'fixed')
    fact('links', String(links.length))
    fact('joints', String(world.joints.filter((j) => j.group === index).length))
    if (group.namespace) fact('namespace', group.namespace)
    if (group.locomotion) {
      fact('locomotion', group.locomotion.type)
      fact('max speed', show(group.locomotion.max_speed), 'm/s')
      fact('max yaw rate', show(group.locomotion.max_turn), 'rad/s')
    }
    if (group.file) fact('file', group.file)
  }
  function describeLink(world: World, index: number): void {
    const link = world.links[index]
    const group = world.groups[link.group]
    setText(title, link.name)
    addLooks(index)
    if (group && rootLink(world, link.group) === index) addActs(group.name, index, !group.robot)
    addPose(index)
    fact('mass', show(link.mass), 'kg')
    fact('centre of mass', triple(link.com), 'm')
    fact('inertia xx yy zz', triple(link.inertia), 'kg m²')
    fact('inertia xy xz yz', triple(link.inertia.slice(3)), 'kg m²')
    const joint = world.joints.findIndex((j) => j.child === index)
    if (joint >= 0) goTo('joint', joint, world.joints[joint].name)
    if (group) goTo('group', link.group, group.name)
    fact('shapes', String(world.shapes.filter((shape) => shape.link === index).length))
  }
  function describeJoint(world: World, index: number): void {
    const joint = world.joints[index]
    const angular = joint.type === 'revolute' || joint.type === 'continuous'
    setText(title, joint.name)
    addLooks(joint.child)
    fact('type', joint.type)
    for (const name of jointValues(joint)) {
      const part = name.slice(joint.name.length + 1)
      value(joint.n_q !== 1 ? part : part === 'q' ? 'position' : 'velocity', name, joint.n_q !== 1 ? '' : part === 'q' ? (angular ? 'rad' : 'm') : angular ? 'rad/s' : 'm/s')
    }
    if (joint.n_q === 1) {
      const wanted = slides(world, index)
      const isVelocity = wanted === 'velocity'
      const usual: [number, number] = angular ? [-Math.PI, Math.PI] : [-1, 1]
      const [low, high] = isVelocity ? usual : (joint.limits ?? usual)
      const slide = h('input', {
        type: 'range',
        min: low,
        max: high,
        step: (high - low) / 500,
        test: 'joint-slider',
        title: hint(world, index, wanted),
        'aria-label': label(world, index, wanted),
        class: 'grow',
      })
      const send = throttle(100, () => {
        for (const text of giveJoint(app, world, index, wanted, slide.valueAsNumber)) tell(app, text)
      })
      slide.addEventListener('input', send)
      live.push(() => {
        if (!slide.matches(':active, :focus')) slide.value = String(app.value(`${joint.name}.${isVelocity ? 'v' : 'q'}`) ?? 0)
      })
      acts.append(h('label', { class: 'line grow' }, h('span', { class: 'field-label' }, label(world, index, wanted)), slide))
    }
    if (joint.limits) fact('limits', `${show(joint.limits[0])} … ${show(joint.limits[1])}`)
    fact('axis', triple(joint.axis))
    for (const key of ['damping', 'stiffness', 'friction', 'armature'] as const) fact(key, show(joint[key]))
    if (joint.parent >= 0) goTo('link', joint.parent, world.links[joint.parent]?.name, 'parent link')
    goTo('link', joint.child, world.links[joint.child]?.name, 'child link')
    const drive = world.drives.findIndex((d) => d.joint === index)
    if (drive >= 0) goTo('drive', drive, world.drives[drive].name)
  }
  function describeShape(world: World, index: number): void {
    const shape: ShapeInfo = world.shapes[index]
    setText(title, shape.name ?? shape.kind)
    setText(kind, `shape of ${shape.link < 0 ? 'the world' : world.links[shape.link].name}`)
    if (shape.link >= 0) {
      const group = world.links[shape.link].group
      addLooks(shape.link)
      if (world.groups[group] && rootLink(world, group) === shape.link) addActs(world.groups[group].name, shape.link, !world.groups[group].robot)
      addPose(shape.link)
      goTo('link', shape.link, world.links[shape.link].name)
    } else {
      looks.append(button('Focus', 'focus', () => app.view.lookAt(shape.p)))
      if (shape.name) addActs(shape.name, -1, true)
    }
    fact('kind', shape.kind)
    fact('size', triple(shape.size), 'm')
    fact('place', triple(shape.p), 'm')
    fact('roll pitch yaw', triple(rollPitchYaw(shape.q)), 'rad')
    fact('visual', shape.visual ? 'yes' : 'no')
    fact('collision', shape.collision ? 'yes' : 'no')
    if (shape.surface) fact('surface', shape.surface)
    if (shape.rgba) fact('colour', triple(shape.rgba, 4))
    if (shape.margin) fact('margin', show(shape.margin), 'm')
    if (shape.level) fact('level', String(shape.level))
    if (shape.nx) fact('grid', `${shape.nx} × ${shape.ny}`)
  }

  // ---- parts
  function addLooks(link: number): void {
    if (link < 0) return
    const look = () => {
      const at = pose(app, link)
      if (at) app.view.lookAt(at.p)
    }
    looks.append(
      button('Focus', 'focus', look),
      button('Follow', 'follow', () => app.view.setCamera('follow', link)),
      button('On board', 'onboard', () => app.view.setCamera('onboard', link)),
    )
  }
  function addPose(link: number): void {
    const at = () => pose(app, link)
    fact(
      'place',
      () =>
        at()
          ?.p.map((v) => fixed(v, 3))
          .join('  ') ?? '–',
      'm',
    )
    fact(
      'roll pitch yaw',
      () => {
        const now = at()
        return now
          ? rollPitchYaw(now.q)
              .map((v) => fixed(v, 3))
              .join('  ')
          : '–'
      },
      'rad',
    )
  }
  // What can be moved as a whole: by a handle, up and down by a step, and away.
  function addActs(name: string, link: number, removable: boolean): void {
    if (link >= 0) {
      const handle = button('Handle', 'handle', () => {
        isHandled = !isHandled
        handle.setAttribute('aria-pressed', String(isHandled))
        app.view.showHandle(isHandled ? link : null, (p, q) => tell(app, `move ${quote(name)} ${[...p, ...rollPitchYaw(q)].map(write).join(' ')}`))
      })
      handle.setAttribute('aria-pressed', 'false')
      acts.append(handle)
    }
    const by = (word: string) => () => tell(app, `${word} ${quote(name)} ${write(Math.abs(step.valueAsNumber) || 0.1)}`)
    acts.append(button('Raise', 'raise', by('raise')), button('Lower', 'lower', by('lower')), step, h('span', { class: 'unit' }, 'm'))
    if (removable) acts.append(button('Remove', 'remove', () => tell(app, `remove ${quote(name)}`), { class: 'danger' }))
  }
  function goTo(to: Selection['kind'], index: number, name: string | undefined, what: string = to): void {
    if (!name) return
    row(
      facts,
      what,
      button(name, `go-${to}`, () => app.select({ kind: to, index }), { class: 'plain', style: 'min-height: 24px; color: var(--accent)' }),
    )
  }

  app.on('select', draw)
  app.on('world', draw)
  app.on('pairs', () => app.selection?.kind === 'pair' && draw())
  const soon = throttle(100, () => visible && refresh())
  app.on('poses', soon)
  app.on('values', soon)
  look = draw
}

function exists(world: World, s: Selection): boolean {
  const list = {
    group: world.groups,
    link: world.links,
    joint: world.joints,
    drive: world.drives,
    shape: world.shapes,
    material: world.materials,
    pair: world.pairs,
  }
  return s.index >= 0 && s.index < list[s.kind].length
}

export default {
  id: 'properties',
  title: 'Selection',
  order: 30,
  icon: 'M5 3l14 8-6 2 4 6-3 2-4-6-5 4z',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
