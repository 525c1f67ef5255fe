// The tree of the whole world, with values that live and those that can be edited.
//
// What is open is one flat list of nodes; of it only the rows in sight are in the document, and only their values are asked for, so a world of
// thousands of nodes costs as much as one of fifty. Children are made when a node is opened. While something is searched for, the list holds
// what matches, each with its path.
import './tree/tree.css'
import type { App, Panel, World } from '../app'
import { coarse, h, icon, icons, iconButton, parse, permission, setText, signal, throttle } from '../ui'
import { buildTree, type Node } from './tree/nodes'

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const search = h('input', { type: 'search', test: 'tree-search', placeholder: 'Search the world', 'aria-label': 'Search the tree' })
  const found = h('small', { class: 'dim', test: 'tree-found', role: 'status' })
  const tree = h('div', { class: 'tree', test: 'tree', role: 'tree', tabindex: 0, 'aria-label': 'The world' })
  const space = h('div', { style: 'position: relative' })
  tree.append(space)
  root.append(search, found, tree)

  let top: Node[] = []
  let all: Node[] = [] // everything a search may find
  let flat: { node: Node; depth: number }[] = []
  let at = '' // the key of the row that the keyboard is at
  let height = 28
  const open = new Set<string>(['robots'])
  const rows = new Map<string, Row>()

  interface Row {
    element: HTMLElement
    node: Node
    live: (() => void) | null
  }

  // ---- which rows there are
  function flatten(): void {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean)
    const next: typeof flat = []
    const add = (node: Node, depth: number) => {
      next.push({ node, depth })
      if (node.children && open.has(node.key)) for (const child of node.children()) add(child, depth + 1)
    }
    if (words.length) {
      const hits = all.filter((node) => words.every((word) => node.find.includes(word)))
      for (const node of hits) add(node, 0)
      setText(found, `${hits.length} found`)
    } else {
      for (const node of top) add(node, 0)
      setText(found, '')
    }
    found.hidden = !words.length
    flat = next
    if (!flat.some((f) => f.node.key === at)) at = ''
    drawRows()
  }

  // ---- the rows in sight
  function drawRows(): void {
    if (!visible) return
    height = coarse.matches ? 44 : 28
    tree.style.setProperty('--row', `${height}px`)
    space.style.height = `${flat.length * height}px`
    const first = Math.max(0, Math.floor(tree.scrollTop / height) - 2)
    const last = Math.min(flat.length, Math.ceil((tree.scrollTop + tree.clientHeight) / height) + 2)
    const kept = new Set<string>()
    const isSearch = search.value.trim() !== ''
    for (let i = first; i < last; i++) {
      const { node, depth } = flat[i]
      if (kept.has(node.key)) continue
      kept.add(node.key)
      let row = rows.get(node.key)
      if (!row || row.node !== node) {
        row?.element.remove()
        rows.set(node.key, (row = createRow(node)))
        space.append(row.element)
      }
      const e = row.element
      e.style.transform = `translateY(${i * height}px)`
      e.style.paddingLeft = `${4 + depth * 13}px`
      e.setAttribute('aria-level', String(depth + 1))
      e.classList.toggle('at', node.key === at)
      e.classList.toggle('picked', isPicked(node))
      e.setAttribute('aria-selected', String(isPicked(node)))
      if (node.children) e.setAttribute('aria-expanded', String(open.has(node.key)))
      const path = e.querySelector<HTMLElement>('.tree-path')!
      path.hidden = !isSearch || depth > 0
      e.classList.toggle('found', isSearch && depth === 0)
    }
    for (const [key, row] of rows) {
      if (kept.has(key)) continue
      row.element.remove()
      rows.delete(key)
    }
    const active = rows.get(at)
    if (active) tree.setAttribute('aria-activedescendant', active.element.id)
    else tree.removeAttribute('aria-activedescendant')
    drawValues()
    watch()
  }
  const watch = throttle(100, () => app.watch('tree', visible ? [...rows.values()].flatMap((row) => row.node.values ?? []) : []))
  const drawValues = () => {
    for (const row of rows.values()) row.live?.()
  }
  const drawSoon = throttle(100, () => visible && drawValues())

  let ids = 0
  function createRow(node: Node): Row {
    const twist = h('span', { class: 'twist' }, node.children ? icon(icons.chevron, 14) : null)
    const element = h(
      'div',
      {
        class: node.children || node.select ? 'tree-row' : 'tree-row leaf',
        id: `tree-row-${ids++}`,
        role: 'treeitem',
        test: `node-${node.key}`,
        title: node.note ?? '',
      },
      twist,
      node.letter ? h('span', { class: 'tree-kind', 'aria-hidden': 'true' }, node.letter) : null,
      h('span', { class: 'tree-label' }, node.label),
      h('span', { class: 'tree-path', hidden: true }, node.path),
    )
    twist.addEventListener('click', (event) => {
      event.stopPropagation()
      toggle(node)
    })
    element.addEventListener('click', (event) => {
      if ((event.target as Element).closest('button, input')) return
      at = node.key
      if (node.select) pick(node)
      else if (node.children) toggle(node)
      drawRows()
    })
    element.addEventListener('dblclick', (event) => {
      if (node.children && node.select && !(event.target as Element).closest('button, input, .twist')) toggle(node)
    })
    let live: (() => void) | null = null
    if (node.edit) {
      const value = h(
        'button',
        {
          type: 'button',
          class: 'tree-edit',
          test: `edit-${node.key}`,
          title: node.editNote ? `Editing ${node.editNote}` : 'Edit',
          'aria-label': node.editNote ? `Edit ${node.label}: ${node.editNote}` : `Edit ${node.label}`,
        },
        node.text?.() ?? '',
      )
      value.addEventListener('click', () => beginEdit(node, value))
      element.append(value)
      live = () => setText(value, node.text?.() ?? '')
    } else if (node.text) {
      const value = h('span', { class: node.isPlace ? 'tree-value place' : 'tree-value', test: `value-${node.key}` }, node.text())
      element.append(value)
      live = () => setText(value, node.text!())
    }
    if (node.unit) element.append(h('span', { class: 'unit', style: 'margin-left: 4px' }, node.unit))
    const plots = node.plots ?? node.values
    if (plots?.length) {
      element.append(
        iconButton(icons.plus, `Plot ${plots.join(', ')}`, `plot-${node.key}`, () => signal('plot', plots), {
          class: 'plain tree-plus',
          tabindex: -1,
        }),
      )
      element.draggable = true
      element.addEventListener('dragstart', (event) => {
        event.dataTransfer?.setData('text/plain', plots.join('\n'))
        event.dataTransfer?.setData('application/x-understudy-values', plots.join('\n'))
      })
    }
    return { element, node, live }
  }

  // ---- editing in place: Enter or leaving the field sends, Escape does not
  function beginEdit(node: Node, value: HTMLElement): void {
    const now = permission(app)
    if (!now.allowed) {
      app.emit('toast', { text: now.reason, bad: true })
      return
    }
    const before = node.now?.()
    const text = before === undefined ? '' : String(Number(before.toPrecision(6)))
    const input = h('input', {
      class: 'tree-input',
      test: 'tree-input',
      value: text,
      inputmode: 'decimal',
      title: node.editNote ? `Enter ${node.editNote}` : '',
      'aria-label': `New value of ${node.label}`,
    })
    let isDone = false
    const end = (send: boolean) => {
      if (isDone) return
      isDone = true
      const hadFocus = document.activeElement === input
      input.replaceWith(value)
      if (hadFocus) tree.focus({ preventScroll: true })
      if (!send || input.value === text) return
      const number = parse(input.value)
      if (Number.isNaN(number)) app.emit('toast', { text: `invalid number “${input.value}”: write one like 0.25, or degrees like 15 deg`, bad: true })
      else for (const text of [node.edit!(number)].flat()) app.command(text).catch(() => undefined)
    }
    input.addEventListener('keydown', (event) => {
      event.stopPropagation()
      if (event.key === 'Enter') end(true)
      if (event.key === 'Escape') end(false)
    })
    input.addEventListener('blur', () => end(input.isConnected))
    value.replaceWith(input)
    input.focus()
    input.select()
  }

  // ---- moving about
  let isPicking = false // the selection comes from here: nothing is opened, nothing moves
  function pick(node: Node): void {
    isPicking = true
    app.select(node.select!)
    isPicking = false
    drawRows()
  }
  function toggle(node: Node): void {
    if (!node.children) return
    if (open.has(node.key)) open.delete(node.key)
    else open.add(node.key)
    at = node.key
    flatten()
  }
  function isPicked(node: Node): boolean {
    const s = app.selection
    return s !== null && node.select !== undefined && node.select.kind === s.kind && node.select.index === s.index
  }
  function goTo(index: number): void {
    if (index < 0 || index >= flat.length) return
    at = flat[index].node.key
    const y = index * height
    if (y < tree.scrollTop) tree.scrollTop = y
    else if (y + height > tree.scrollTop + tree.clientHeight) tree.scrollTop = y + height - tree.clientHeight
    drawRows()
  }
  tree.addEventListener('keydown', (event) => {
    const i = flat.findIndex((f) => f.node.key === at)
    const node = flat[i]?.node
    const page = Math.max(1, Math.floor(tree.clientHeight / height) - 1)
    const handled = () => event.preventDefault()
    switch (event.key) {
      case 'ArrowDown':
        goTo(Math.min(flat.length - 1, i + 1))
        return handled()
      case 'ArrowUp':
        goTo(Math.max(0, i - 1))
        return handled()
      case 'PageDown':
        goTo(Math.min(flat.length - 1, i + page))
        return handled()
      case 'PageUp':
        goTo(Math.max(0, i - page))
        return handled()
      case 'Home':
        goTo(0)
        return handled()
      case 'End':
        goTo(flat.length - 1)
        return handled()
      case 'ArrowRight':
        if (node?.children && !open.has(node.key)) toggle(node)
        else goTo(i + 1)
        return handled()
      case 'ArrowLeft': {
        if (node?.children && open.has(node.key)) toggle(node)
        else goTo(flat.findLastIndex((f, k) => k < i && f.depth < flat[i].depth))
        return handled()
      }
      case 'Enter':
      case ' ': {
        if (event.target !== tree || !node) return
        const edit = rows.get(node.key)?.element.querySelector<HTMLButtonElement>('.tree-edit')
        if (edit) edit.click()
        else if (node.select) pick(node)
        else toggle(node)
        return handled()
      }
      case '+':
        if (node && (node.plots ?? node.values)) signal('plot', (node.plots ?? node.values)!)
        return handled()
    }
  })

  // What is picked in the view is opened and brought into sight.
  function reveal(): void {
    const target = all.find(isPicked)
    if (!target) return drawRows()
    for (const key of target.above) open.add(key)
    if (flat.every((f) => f.node !== target) && search.value) search.value = ''
    flatten()
    const index = flat.findIndex((f) => f.node.key === target.key)
    if (index >= 0 && visible) goTo(index)
  }

  function rebuild(world: World): void {
    const built = buildTree(app, world)
    top = built.top
    all = built.all
    rows.forEach((row) => row.element.remove())
    rows.clear()
    if (world.groups.filter((g) => g.robot).length === 0) open.add('objects')
    flatten()
  }

  app.on('world', rebuild)
  app.on('select', () => {
    if (visible && !isPicking) reveal()
  })
  app.on('poses', drawSoon)
  app.on('values', drawSoon)
  app.on('pairs', drawSoon)
  app.on('status', drawSoon)
  search.addEventListener('input', () => {
    tree.scrollTop = 0
    flatten()
  })
  search.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') {
      tree.focus()
      goTo(0)
      event.preventDefault()
    }
  })
  tree.addEventListener('scroll', drawRows, { passive: true })
  new ResizeObserver(drawRows).observe(tree)
  coarse.addEventListener('change', drawRows)
  look = () => {
    if (visible) reveal()
    else app.watch('tree', [])
  }
}

export default {
  id: 'tree',
  title: 'World',
  order: 20,
  icon: 'M4 5h6M8 5v14M8 12h6M8 19h6M17 12h3M17 19h3',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
