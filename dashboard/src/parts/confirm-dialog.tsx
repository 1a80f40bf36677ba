/** Confirms a deletion, sends it, and shows its error. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { messageOf } from '../io/client.ts';
import { DialogFooter, Modal } from './modal.tsx';

interface ConfirmDialogProps {
  readonly title: string;
  readonly text: string;
  /** Label of the button. */
  readonly action: string;
  /** Target of the `DELETE` request. */
  readonly path: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ConfirmDialog({ title, text, action, path, onClose, onDone }: ConfirmDialogProps): JSX.Element {
  const { client } = useApp();
  const [failure, setFailure] = useState('');
  const send = (): void => void client.fetchJson(path, { method: 'DELETE' }).then(onDone, (error: unknown) => setFailure(messageOf(error)));
  return (
    <Modal kind="dialog" title={title} onClose={onClose}>
      <p>{text}</p>
      {failure !== '' && <p role="alert">{failure}</p>}
      <DialogFooter onClose={onClose} action={action} kind="danger" onAction={send} />
    </Modal>
  );
}
