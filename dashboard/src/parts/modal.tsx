/** A dialog of the platform, which keeps the focus inside and closes with Escape. */
import type { ComponentChildren, JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { T } from '../texts.ts';

interface ModalProps {
  readonly title: string;
  /** Called for Escape, the button and a click beside it. Undefined: it can be left only by what it contains. */
  readonly onClose?: (() => void) | undefined;
  /** A drawer stands at the side, over the whole height. */
  readonly kind: 'dialog' | 'drawer';
  readonly children: ComponentChildren;
}

export function Modal({ title, onClose, kind, children }: ModalProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Not "useEffect", whose end comes after the page was drawn without the dialog: meanwhile nothing would have the focus.
  useLayoutEffect(() => {
    const [shown, before] = [dialog.current, document.activeElement];
    shown?.showModal();
    return () => {
      // What lies behind an open dialog cannot be focused.
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const cancel = (event: Event): void => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog
      ref={dialog}
      class={kind}
      aria-labelledby={id}
      onCancel={cancel}
      onKeyDown={(event) => {
        // Browsers let a second Escape close a dialog that refused the first.
        if (event.key === 'Escape') cancel(event);
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose?.();
      }}
    >
      <div class="modal-body">
        <header>
          <h2 id={id}>{title}</h2>
          {onClose !== undefined && (
            <button type="button" class="quiet" onClick={onClose}>
              {T.close}
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}
