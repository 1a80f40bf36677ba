/** A native dialog, which traps the focus and closes with Escape. */
import type { ComponentChildren, JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { T } from '../texts.ts';

interface ModalProps {
  readonly title: string;
  /** Called for Escape, the close button and a click on the backdrop. Undefined disables all three. */
  readonly onClose?: (() => void) | undefined;
  /** A drawer covers the full height at the side. */
  readonly kind: 'dialog' | 'drawer';
  readonly children: ComponentChildren;
}

interface DialogFooterProps {
  readonly onClose: () => void;
  /** Label of the button. */
  readonly action: string;
  readonly kind?: 'main' | 'danger';
  readonly disabled?: boolean;
  /** Undefined: the button submits the form. */
  readonly onAction?: () => void;
}

export function DialogFooter({ onClose, action, kind = 'main', disabled = false, onAction }: DialogFooterProps): JSX.Element {
  return (
    <footer>
      <button type="button" onClick={onClose}>
        {T.cancel}
      </button>
      <button type={onAction === undefined ? 'submit' : 'button'} class={kind} disabled={disabled} onClick={onAction}>
        {action}
      </button>
    </footer>
  );
}

export function Modal({ title, onClose, kind, children }: ModalProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Not `useEffect`: its clean-up runs after a frame without the dialog, in which nothing would have the focus.
  useLayoutEffect(() => {
    const [shown, before] = [dialog.current, document.activeElement];
    shown?.showModal();
    return () => {
      // Elements behind an open dialog cannot be focused.
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
        // A second Escape closes a dialog even if the first was cancelled.
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
