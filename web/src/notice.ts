// What the page has to say over the view: no graphics, or no connection.
import type { App } from './app'

export function createNotice(app: App, place: HTMLElement, hasGraphics: boolean): void {
  const notice = document.createElement('div')
  notice.setAttribute('role', 'alert')
  notice.dataset.testid = 'notice'
  Object.assign(notice.style, {
    position: 'absolute',
    left: '50%',
    top: '16px',
    transform: 'translateX(-50%)',
    maxWidth: 'min(90%, 460px)',
    padding: '10px 16px',
    borderRadius: '10px',
    background: 'rgba(20, 25, 32, 0.92)',
    color: '#e8eef5',
    font: '14px/1.45 system-ui, sans-serif',
    boxShadow: '0 6px 24px rgba(0, 0, 0, 0.4)',
    border: '1px solid rgba(255, 180, 84, 0.5)',
    zIndex: '5',
    display: 'none',
  })
  place.append(notice)
  const say = (text: string): void => {
    notice.textContent = text
    notice.style.display = text === '' ? 'none' : 'block'
  }
  const standing = hasGraphics ? '' : 'This browser has no WebGL 2, so the world cannot be drawn. The panels work all the same.'
  say(standing)
  app.on('close', (reason) => say(`Not connected: ${reason}. Trying again…`))
  app.on('open', () => say(standing))
}
