/** The board as a caller sees it who may use some models only: the others do not exist. */
import type { RoutedView } from '../reconciler/board.ts';

/**
 * `models`: a slot stands for all of its names, a model id or alias for itself. Undefined: everything is visible. The
 * result is the same object until the board changes.
 */
export type VisibleTo<View extends RoutedView> = (view: View, models: readonly string[] | undefined) => View;

export function createVisibleBoards<View extends RoutedView>(): VisibleTo<View> {
  /** The last view of each list. */
  const views = new WeakMap<readonly string[], { readonly of: View; readonly visible: View }>();
  return (view, models) => {
    if (models === undefined) return view;
    const last = views.get(models);
    if (last?.of === view) return last.visible;
    const visible = { ...view, ...limit(view, new Set(models)) };
    views.set(models, { of: view, visible });
    return visible;
  };
}

function limit({ names, slots, refused }: RoutedView, models: ReadonlySet<string>) {
  const visible = [...names].flatMap(([name, serving]) => {
    const allowed = models.has(name) ? serving : serving.filter((slot) => models.has(slot));
    return allowed.length === 0 ? [] : [[name, allowed] as const];
  });
  const reached = new Set(visible.flatMap(([, serving]) => serving));
  return {
    names: new Map(visible),
    slots: new Map([...slots].filter(([name]) => reached.has(name))),
    refused: new Map([...refused].filter(([name]) => models.has(name))),
  };
}
