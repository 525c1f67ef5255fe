// What the tree holds: the world as nodes. Children are made when somebody opens a node; only what can be searched for is made at once.
import type { App, Selection, ShapeInfo, World } from '../../app'
import { giveJoint, hint } from '../../joint'
import { fixed, jointValues, pose, quote, rootLink, rollPitchYaw, show, write } from '../../ui'

export interface Node {
  key: string // the same through all revisions
  label: string
  letter?: string // a mark of its kind
  note?: string
  path: string // where it is, for a search
  above: string[] // keys of those that must be open to see it
  find: string // what a search compares, in lower case
  select?: Selection
  children?: () => Node[]
  text?: () => string // what stands at the right, now
  isPlace?: boolean // the text is where it is
  unit?: string
  now?: () => number | undefined // the number to edit
  edit?: (value: number) => string | string[] // the commands
  editNote?: string // what they do
  values?: string[] // names to watch while it is in sight
  plots?: string[] // names for the scope, where they are not those watched
}

export function buildTree(app: App, world: World): { top: Node[]; all: Node[] } {
  const all: Node[] = []

  // A node that a search can find.
  function element(parent: Node | null, key: string, label: string, rest: Partial<Node>): Node {
    const node: Node = { key, label, path: '', above: [], find: '', ...rest }
    if (parent) {
      node.path = parent.path ? `${parent.path} › ${parent.label}` : parent.label
      node.above = [...parent.above, parent.key]
    }
    node.find = `${node.path} ${label} ${rest.find ?? ''}`.toLowerCase()
    all.push(node)
    return node
  }
  function section(key: string, label: string, count: number): Node {
    return { key, label, path: '', above: [], find: '', text: () => String(count) }
  }
  // A plain fact, or a value that lives: made when its parent is opened.
  function leaf(parent: Node, name: string, text: string | (() => string), rest: Partial<Node> = {}): Node {
    const live = typeof text === 'string' ? () => text : text
    return { key: `${parent.key}.${name}`, label: name, path: '', above: [], find: '', text: live, ...rest }
  }
  const triple = (v: ArrayLike<number>, n = 3) => Array.from({ length: n }, (_, i) => show(v[i])).join('  ')

  // ---- links, with the joint that carries them, its drives and shapes
  const jointsOf = bucket(world.joints, (j) => j.child)
  const drivesOf = bucket(world.drives, (d) => d.joint)
  const shapesOf = bucket(world.shapes, (s) => s.link)
  const linksOf = bucket(world.links, (l) => l.group)
  const short = (name: string, group: number) => {
    const prefix = `${world.groups[group]?.name ?? ''}/`
    return name.startsWith(prefix) ? name.slice(prefix.length) : name
  }

  function groupNode(parent: Node, index: number): Node {
    const group = world.groups[index]
    const root = rootLink(world, index)
    const node = element(parent, `group:${group.name}`, group.name, {
      letter: group.robot ? 'R' : 'O',
      note: group.file ?? undefined,
      find: group.robot ? 'robot' : 'object',
      select: { kind: 'group', index },
      text: () => place(root),
      isPlace: true,
      plots: root < 0 ? [] : ['x', 'y', 'z'].map((k) => `${world.links[root].name}.${k}`),
    })
    const links = (linksOf.get(index) ?? []).map((i) => linkNode(node, i, i === root))
    node.children = () => [
      ...(group.locomotion ? [leaf(node, 'locomotion', group.locomotion.type)] : []),
      ...(group.namespace ? [leaf(node, 'namespace', `/${group.namespace.replace(/^\//, '')}`)] : []),
      ...(group.file ? [leaf(node, 'file', group.file)] : []),
      ...links,
    ]
    return node
  }
  function place(link: number): string {
    const at = pose(app, link)
    return at ? at.p.map((v) => fixed(v, 2)).join('  ') : ''
  }
  function linkNode(parent: Node, index: number, isRoot: boolean): Node {
    const link = world.links[index]
    const group = world.groups[link.group]
    const node = element(parent, `link:${link.name}`, short(link.name, link.group), {
      letter: 'L',
      note: link.name,
      find: 'link',
      select: { kind: 'link', index },
      text: () => place(index),
      isPlace: true,
      plots: ['x', 'y', 'z'].map((k) => `${link.name}.${k}`),
    })
    const inner = [...(jointsOf.get(index) ?? []).map((j) => jointNode(node, j)), ...(shapesOf.get(index) ?? []).map((s) => shapeNode(node, s))]
    node.children = () => [...inner, ...poseLeaves(node, index, isRoot ? (group?.name ?? null) : null), ...massLeaves(node, index)]
    return node
  }
  function poseLeaves(node: Node, index: number, movable: string | null): Node[] {
    const name = world.links[index].name
    const at = () => pose(app, index)
    const linear = ['x', 'y', 'z'].map((axis, k) =>
      leaf(node, axis, () => fixed(at()?.p[k], 3), {
        unit: 'm',
        plots: [`${name}.${axis}`],
        now: () => at()?.p[k],
        edit: movable === null ? undefined : (value) => moveCommand(movable, index, k, value),
      }),
    )
    const angular = ['roll', 'pitch', 'yaw'].map((axis, k) => {
      const angle = () => {
        const now = at()
        return now ? rollPitchYaw(now.q)[k] : undefined
      }
      return leaf(node, axis, () => fixed(angle(), 3), {
        unit: 'rad',
        now: angle,
        edit: movable === null ? undefined : (value) => moveCommand(movable, index, k + 3, value),
      })
    })
    return [...linear, ...angular]
  }
  function moveCommand(name: string, index: number, k: number, value: number): string {
    const now = pose(app, index)!
    const six = [...now.p, ...rollPitchYaw(now.q)]
    six[k] = value
    return `move ${quote(name)} ${six.map(write).join(' ')}`
  }
  function massLeaves(node: Node, index: number): Node[] {
    const link = world.links[index]
    return [
      leaf(node, 'mass', show(link.mass), { unit: 'kg' }),
      leaf(node, 'centre of mass', triple(link.com), { unit: 'm' }),
      leaf(node, 'inertia', triple(link.inertia, Math.min(6, link.inertia.length)), { unit: 'kg m²', note: 'xx yy zz xy xz yz' }),
    ]
  }

  function jointNode(parent: Node, index: number): Node {
    const joint = world.joints[index]
    const angular = joint.type === 'revolute' || joint.type === 'continuous'
    const one = joint.n_q === 1
    const node = element(parent, `joint:${joint.name}`, short(joint.name, joint.group), {
      letter: 'J',
      note: `${joint.name}: ${joint.type}`,
      find: `joint ${joint.type} ${joint.name}`,
      select: { kind: 'joint', index },
      values: one ? [`${joint.name}.q`] : undefined,
      text: one ? () => fixed(app.value(`${joint.name}.q`), 3) : () => joint.type,
      unit: one ? (angular ? 'rad' : 'm') : undefined,
      plots: jointValues(joint),
    })
    const drives = (drivesOf.get(index) ?? []).map((d) => driveNode(node, d))
    node.children = () => [
      ...drives,
      ...jointValues(joint).map((name) => {
        const part = name.slice(joint.name.length + 1)
        const isSpeed = part.startsWith('v')
        const value = () => app.value(name)
        const wanted = isSpeed ? 'velocity' : 'position'
        return leaf(node, one ? wanted : part, () => fixed(value(), 4), {
          unit: one ? (isSpeed ? (angular ? 'rad/s' : 'm/s') : angular ? 'rad' : 'm') : undefined,
          values: [name],
          now: value,
          editNote: one ? hint(world, index, wanted) : undefined,
          edit: one ? (v) => giveJoint(app, world, index, wanted, v) : undefined,
        })
      }),
      leaf(node, 'type', joint.type),
      leaf(node, 'parent', joint.parent < 0 ? 'the world' : world.links[joint.parent].name),
      ...(joint.type === 'fixed' || joint.type === 'floating' ? [] : [leaf(node, 'axis', triple(joint.axis))]),
      ...(joint.limits ? [leaf(node, 'limits', `${show(joint.limits[0])} … ${show(joint.limits[1])}`)] : []),
      ...(['damping', 'stiffness', 'friction', 'armature'] as const).flatMap((k) => (joint[k] ? [leaf(node, k, show(joint[k]))] : [])),
    ]
    return node
  }
  function driveNode(parent: Node, index: number): Node {
    const drive = world.drives[index]
    const name = `${drive.name}.torque`
    const linear = world.joints[drive.joint]?.type === 'prismatic'
    const node = element(parent, `drive:${drive.name}`, short(drive.name, world.joints[drive.joint]?.group ?? -1), {
      letter: 'D',
      note: drive.name,
      find: `drive motor ${drive.name}`,
      select: { kind: 'drive', index },
      values: [name],
      text: () => fixed(app.value(name), 2),
      unit: linear ? 'N' : 'N m',
    })
    node.children = () => [
      leaf(node, 'kp', show(drive.kp)),
      leaf(node, 'kd', show(drive.kd)),
      leaf(node, 'limit', drive.limit ? show(drive.limit) : 'none'),
    ]
    return node
  }
  function shapeNode(parent: Node, index: number): Node {
    const shape = world.shapes[index]
    const label = shape.name ?? shape.kind
    const node = element(parent, `shape:${shape.link < 0 ? '' : world.links[shape.link].name}#${shape.name ?? index}`, label, {
      letter: 'S',
      find: `shape ${shape.kind} ${shape.surface ?? ''}`,
      select: { kind: 'shape', index },
      text: () => (shape.name ? shape.kind : shapeRole(shape)),
    })
    node.children = () => shapeLeaves(node, shape)
    return node
  }
  function shapeLeaves(node: Node, shape: ShapeInfo): Node[] {
    const angles = rollPitchYaw(shape.q)
    const isMovable = shape.link < 0 && shape.name !== null
    const places = ['x', 'y', 'z'].map((axis, k) =>
      leaf(node, axis, show(shape.p[k]), {
        unit: 'm',
        now: () => shape.p[k],
        edit: isMovable
          ? (value) => `move ${quote(shape.name!)} ${[...shape.p.map((v, i) => (i === k ? value : v)), ...angles].map(write).join(' ')}`
          : undefined,
      }),
    )
    return [
      leaf(node, 'kind', shape.kind),
      leaf(node, 'used for', shapeRole(shape)),
      leaf(node, 'size', triple(shape.size), { unit: 'm' }),
      ...places,
      leaf(node, 'roll pitch yaw', triple(angles), { unit: 'rad' }),
      ...(shape.surface ? [leaf(node, 'surface', shape.surface)] : []),
      ...(shape.rgba ? [leaf(node, 'colour', triple(shape.rgba, 4))] : []),
      ...(shape.margin ? [leaf(node, 'margin', show(shape.margin), { unit: 'm' })] : []),
      ...(shape.level ? [leaf(node, 'level', String(shape.level))] : []),
      ...(shape.nx ? [leaf(node, 'grid', `${shape.nx} × ${shape.ny}`)] : []),
      ...(shape.points ? [leaf(node, 'points', String(shape.points.length / 3))] : []),
      ...(shape.parts ? [leaf(node, 'parts', String(shape.parts.length))] : []),
    ]
  }

  // ---- the sections
  const groups = world.groups.map((group, index) => ({ group, index }))
  const robots = groups.filter(({ group }) => group.robot)
  const objects = groups.filter(({ group }) => !group.robot)
  const still = shapesOf.get(-1) ?? []
  const top: Node[] = []
  function list(key: string, label: string, count: number, make: (node: Node, i: number) => Node): void {
    if (!count) return
    const node = section(key, label, count)
    const children = Array.from({ length: count }, (_, i) => make(node, i))
    node.children = () => children
    top.push(node)
  }
  list('robots', 'Robots', robots.length, (node, i) => groupNode(node, robots[i].index))
  list('objects', 'Objects', objects.length, (node, i) => groupNode(node, objects[i].index))
  list('still', 'Ground and what stands still', still.length, (node, i) => shapeNode(node, still[i]))
  list('materials', 'Materials', world.materials.length, (parent, index) => {
    const material = world.materials[index]
    const node = element(parent, `material:${material.name}`, material.name, { letter: 'M', find: 'material', select: { kind: 'material', index } })
    const keys = Object.keys(material.properties)
    if (keys.length) node.children = () => keys.map((key) => leaf(node, key, String(material.properties[key])))
    return node
  })
  list('pairs', 'Interaction of materials', world.pairs.length, (parent, index) => {
    const pair = world.pairs[index]
    const node = element(parent, `pair:${pair.a ?? '*'}:${pair.b ?? '*'}:${pair.fidelity ?? ''}`, `${pair.a ?? 'any'} – ${pair.b ?? 'any'}`, {
      letter: 'P',
      find: `pair interaction ${pair.model}`,
      select: { kind: 'pair', index },
      text: () => pair.model,
    })
    const values = () => app.pairs.find((p) => (p.a === pair.a && p.b === pair.b) || (p.a === pair.b && p.b === pair.a))?.values ?? {}
    node.children = () => [
      leaf(node, 'model', pair.model),
      ...(pair.fidelity ? [leaf(node, 'fidelity', pair.fidelity)] : []),
      ...Object.keys(values()).map((key) =>
        leaf(node, key, () => show(values()[key]), {
          now: () => values()[key],
          edit: (value) => `pair ${quote(pair.a!)} ${quote(pair.b!)} ${key}=${write(value)}`,
        }),
      ),
    ]
    return node
  })
  list('couplings', 'Couplings', world.couplings.length, (node, i) =>
    element(node, `coupling:${world.couplings[i].name}:${i}`, world.couplings[i].name, { letter: 'C', find: 'coupling' }),
  )
  list('loops', 'Loops', world.loops.length, (node, i) =>
    element(node, `loop:${world.loops[i].name}:${i}`, world.loops[i].name, { letter: 'K', find: 'loop', text: () => world.loops[i].type }),
  )

  const settings: Node = { key: 'settings', label: 'Settings', path: '', above: [], find: 'settings' }
  settings.children = () => [
    leaf(settings, 'scene', world.name),
    ...(world.file ? [leaf(settings, 'file', world.file)] : []),
    leaf(settings, 'step', show(world.step * 1000), { unit: 'ms' }),
    leaf(settings, 'gravity', triple(world.gravity), { unit: 'm/s²' }),
    leaf(settings, 'integrator', world.integrator),
    leaf(settings, 'solver', world.solver),
    leaf(settings, 'seed', String(world.seed)),
    leaf(settings, 'revision', String(world.epoch)),
    ...['energy', 'energy.kinetic', 'energy.potential'].map((name) =>
      leaf(settings, name, () => show(app.value(name)), { unit: 'J', values: [name] }),
    ),
    leaf(settings, 'closure', () => show(app.value('closure')), { values: ['closure'] }),
  ]
  top.push(settings)
  all.push(settings)
  return { top, all }
}

export function shapeRole(shape: ShapeInfo): string {
  if (shape.visual && shape.collision) return 'visual and collision'
  return shape.visual ? 'visual' : 'collision'
}

function bucket<T>(list: T[], of: (item: T) => number): Map<number, number[]> {
  const map = new Map<number, number[]>()
  list.forEach((item, i) => {
    const key = of(item)
    const old = map.get(key)
    if (old) old.push(i)
    else map.set(key, [i])
  })
  return map
}
