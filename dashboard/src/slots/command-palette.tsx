/** Finds pages, slots and actions by a few typed letters. */
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { useApp, useMay, type App } from '../app-context.ts';
import { rankMatches } from '../decide/rank-matches.ts';
import { hashOf, PAGES, type Place } from '../decide/route.ts';
import { actionsOf, canEdit } from '../decide/slot-facts.ts';
import { allSlots } from '../io/store.ts';
import { Modal } from '../parts/modal.tsx';
import { selectTheme } from '../parts/theme-field.tsx';
import { N } from '../texts-new-slot.ts';
import { PAGE_NAMES, T, THEMES } from '../texts.ts';
import type { Slot } from '../types.ts';
import { NewSlotDialog } from './new-slot.tsx';
import { offersOf } from './slot-actions.ts';

const showItem = (item: Element | null): void => item?.scrollIntoView({ block: 'nearest' });

interface Command {
  readonly text: string;
  readonly kind: keyof typeof N.commandKinds;
  readonly run: () => unknown;
}

const MOST_SHOWN = 50;
const LIST = 'commands';

export function CommandPalette(): JSX.Element {
  const app = useApp();
  const isAdmin = useMay()('admin');
  const [typed, setTyped] = useState('');
  const [index, setIndex] = useState(0);
  const [isNew, setIsNew] = useState(false);
  const names = app.store.names.value;
  const commands = useMemo(() => listCommands(app, isAdmin, () => setIsNew(true)), [names, isAdmin]);
  const found = useMemo(() => rankMatches(typed, commands, MOST_SHOWN), [typed, commands]);
  const close = (): void => void (app.palette.value = false);
  if (isNew) return <NewSlotDialog onClose={close} />;
  const run = (command: Command | undefined): void => {
    if (command?.kind !== 'create') close();
    command?.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if ((step === undefined && event.key !== 'Enter') || event.isComposing) return;
    event.preventDefault();
    if (step === undefined) run(found[index]);
    else setIndex((index + step + found.length) % Math.max(1, found.length));
  };
  return (
    <Modal kind="dialog" title={N.commands} onClose={close}>
      <input
        role="combobox"
        aria-label={N.commandHint}
        placeholder={N.commandHint}
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls={LIST}
        aria-activedescendant={found.length > 0 ? `${LIST}-${index}` : undefined}
        autocomplete="off"
        autofocus
        value={typed}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setIndex(0);
        }}
      />
      <ul id={LIST} role="listbox" aria-label={N.commands} class="commands">
        {found.map((command, at) => (
          <li
            key={`${command.kind} ${command.text}`}
            id={`${LIST}-${at}`}
            role="option"
            aria-selected={at === index}
            ref={at === index ? showItem : null}
            onClick={() => run(command)}
          >
            {command.text} <small>{N.commandKinds[command.kind]}</small>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p role="status">{N.noCommands}</p>}
    </Modal>
  );
}

/** Those that buttons and links offer. */
function listCommands({ store, change, place }: App, isAdmin: boolean, openNew: () => void): readonly Command[] {
  const go = (to: Place) => () => (location.hash = hashOf(to));
  const ofSlot = (slot: Slot): readonly Command[] => [
    { text: slot.name, kind: 'slot', run: go({ page: 'slots', slot: slot.name, query: place.peek().query ?? '' }) },
    ...(isAdmin && canEdit(slot) ? offersOf(slot.name, actionsOf(slot)) : []).flatMap(({ label, make }): readonly Command[] =>
      make === undefined ? [] : [{ text: `${label} ${slot.name}`, kind: 'action', run: () => (change.value = make()) }],
    ),
  ];
  return [
    ...PAGES.map((page): Command => ({ text: PAGE_NAMES[page], kind: 'page', run: go({ page }) })),
    ...(isAdmin ? [{ text: N.title, kind: 'create', run: openNew } as const] : []),
    ...THEMES.map(([id, name]): Command => ({ text: `${T.theme}: ${name}`, kind: 'action', run: () => selectTheme(id) })),
    ...allSlots(store).flatMap(ofSlot),
  ];
}
