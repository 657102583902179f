"use strict";
// A molecule that is being drawn: atoms in the plane, bonds between them, and its SMILES.
const BOND = 40; // length of a bond in the picture
const MOST_ATOMS = 300;
const MOST_CHARGE = 4;
const PLAIN = new Set(["B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I"]); // need no brackets
const VALENCE = { B: 3, C: 4, N: 3, O: 2, P: 3, S: 2, F: 1, Cl: 1, Br: 1, I: 1, Si: 4, Ge: 4, As: 3, Se: 2, Te: 2 };
const ELEMENTS = new Set(("H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
  + "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os "
  + "Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U").split(" "));

const between = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
const angleTo = (from, to) => Math.atan2(to.y - from.y, to.x - from.x);
const beside = ({ x, y }, angle, length) => ({ x: x + length * Math.cos(angle), y: y + length * Math.sin(angle) });

class Molecule {
  atoms = []; // {element, charge, x, y}
  bonds = []; // {ends: [atom, atom], order}

  bondsOf(atom) { return this.bonds.filter(({ ends }) => ends.includes(atom)); }
  bondBetween(a, b) { return this.bonds.find(({ ends }) => ends.includes(a) && ends.includes(b)); }
  neighbours(atom) { return this.bondsOf(atom).map(({ ends: [a, b] }) => (a === atom ? b : a)); }
  largestOrder(atom) { return Math.max(0, ...this.bondsOf(atom).map(({ order }) => order)); }
  nearest(point) { return Math.min(...this.atoms.map((atom) => between(atom, point))); }

  add({ x, y }, element = "C", charge = 0) {
    if (this.atoms.length >= MOST_ATOMS) throw new Error(`At most ${MOST_ATOMS} atoms can be drawn.`);
    const atom = { element, charge, x, y };
    this.atoms.push(atom);
    return atom;
  }

  join(a, b, order) {
    const known = this.bondBetween(a, b);
    if (known) known.order = order;
    else if (a !== b) this.bonds.push({ ends: [a, b], order });
  }

  remove({ atom, bond }) {
    this.bonds = this.bonds.filter((each) => each !== bond && !each.ends.includes(atom));
    this.atoms = this.atoms.filter((each) => each !== atom);
  }

  // Where there is room for one more bond: 120 degrees from a single neighbour, else in the widest gap.
  freeAngle(atom, order = 1) {
    const taken = this.neighbours(atom).map((other) => angleTo(atom, other)).sort((a, b) => a - b);
    let angles = [-Math.PI / 6];
    if (taken.length === 1) {
      const straight = order === 3 || this.largestOrder(atom) === 3 || (order === 2 && this.largestOrder(atom) === 2);
      angles = straight ? [taken[0] + Math.PI] : [taken[0] + 2 * Math.PI / 3, taken[0] - 2 * Math.PI / 3];
    } else if (taken.length > 1) {
      const gaps = taken.map((angle, at) => [((taken[at + 1] ?? taken[0] + 2 * Math.PI) - angle), angle]);
      const widest = Math.max(...gaps.map(([gap]) => gap));
      angles = gaps.filter(([gap]) => gap > widest - 0.1).map(([gap, angle]) => angle + gap / 2);
    }
    const room = (angle) => this.nearest(beside(atom, angle, BOND));
    const best = (some) => some.reduce((one, other) => (room(other) > room(one) + 1 ? other : one));
    const found = best(angles);
    return room(found) > BOND / 2 ? found : best(Array.from({ length: 24 }, (_, at) => at * Math.PI / 12));
  }

  sprout(atom, order) {
    const made = this.add(beside(atom, this.freeAngle(atom, order), BOND));
    this.join(atom, made, order);
    return made;
  }

  // A ring on a bond, through an atom that has room for it, bound to any other atom, or alone.
  ring(size, aromatic, { atom, bond, point }) {
    const radius = BOND / (2 * Math.sin(Math.PI / size));
    const step = 2 * Math.PI / size;
    if (bond) {
      const [a, b] = bond.ends;
      const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
      const centres = [1, -1].map((side) => beside(middle, angleTo(a, b) + side * Math.PI / 2, radius * Math.cos(step / 2)));
      const crowd = (centre) => this.atoms.filter((each) => between(each, centre) < radius + BOND / 2).length;
      const centre = crowd(centres[0]) <= crowd(centres[1]) ? centres[0] : centres[1];
      const turn = Math.sin(angleTo(centre, b) - angleTo(centre, a)) > 0 ? step : -step;
      return this.close([a, b], centre, radius, turn, size, aromatic);
    }
    if (!atom) {
      const first = this.add(beside(point, -Math.PI / 2, radius));
      return this.close([first], point, radius, step, size, aromatic);
    }
    const full = this.neighbours(atom).length > 1 || this.largestOrder(atom) > 1;
    const first = full ? this.sprout(atom, 1) : atom;
    return this.close([first], beside(first, this.ringAngle(first), radius), radius, step, size, aromatic);
  }

  // A ring stands opposite the bond that holds it.
  ringAngle(atom) {
    const [other] = this.neighbours(atom);
    return other ? angleTo(other, atom) : Math.PI / 2;
  }

  close(given, centre, radius, step, size, aromatic) {
    const last = given[given.length - 1];
    const begin = angleTo(centre, last);
    const corners = [...given];
    for (let at = 1; corners.length < size; at += 1) {
      const place = beside(centre, begin + at * step, radius);
      // A ring on a bond may meet another ring, as in phenanthrene's bay.
      const met = given.length > 1 && this.atoms.find((each) => between(each, place) < BOND / 3);
      corners.push(met || this.add(place));
    }
    const sides = corners.map((atom, at) => [atom, corners[(at + 1) % size]]);
    for (const [a, b] of sides) if (!this.bondBetween(a, b)) this.join(a, b, 1);
    if (aromatic) this.alternate(sides);
    return corners[0];
  }

  // Double bonds in every other side, beginning where more of them find room.
  alternate(sides) {
    const single = (atom) => this.largestOrder(atom) < 2;
    const open = (first) => sides.filter(([a, b], at) => at % 2 === first
      && ((single(a) && single(b)) || this.bondBetween(a, b).order === 2));
    const [even, odd] = [open(0), open(1)];
    for (const [a, b] of even.length >= odd.length ? even : odd) this.bondBetween(a, b).order = 2;
  }

  get smiles() {
    const when = new Map();
    const branches = new Map();
    const closures = new Map(this.atoms.map((atom) => [atom, ""]));
    let rings = 0;
    const symbol = ({ order }) => ["", "", "=", "#"][order];
    const number = (ring) => (ring < 10 ? `${ring}` : ring < 100 ? `%${ring}` : `%(${ring})`);
    const visit = (atom, from) => {
      when.set(atom, when.size);
      branches.set(atom, []);
      for (const bond of this.bondsOf(atom)) {
        if (bond === from) continue;
        const next = bond.ends[0] === atom ? bond.ends[1] : bond.ends[0];
        if (!when.has(next)) {
          branches.get(atom).push([bond, next]);
          visit(next, bond);
        } else if (when.get(next) < when.get(atom)) {
          rings += 1;
          for (const end of [atom, next]) closures.set(end, closures.get(end) + symbol(bond) + number(rings));
        }
      }
    };
    const written = (atom) => {
      const parts = branches.get(atom).map(([bond, next]) => symbol(bond) + written(next));
      const tail = parts.pop() ?? "";
      return this.written(atom) + closures.get(atom) + parts.map((part) => `(${part})`).join("") + tail;
    };
    return this.atoms.filter((atom) => {
      const first = !when.has(atom);
      if (first) visit(atom, null);
      return first;
    }).map(written).join(".");
  }

  // An atom in brackets must say how many hydrogens it has.
  written(atom) {
    const { element, charge } = atom;
    if (PLAIN.has(element) && charge === 0) return element;
    const bonds = this.bondsOf(atom).reduce((sum, { order }) => sum + order, 0);
    const valence = VALENCE[element] ?? 0;
    // One bond more for every positive charge of nitrogen, one less at carbon whatever the sign.
    const room = valence === 4 ? valence - Math.abs(charge) : valence + (element === "B" ? -charge : charge);
    const hydrogens = element in VALENCE ? Math.max(0, room - bonds) : 0;
    const count = (text, times) => (times === 0 ? "" : times === 1 ? text : `${text}${times}`);
    return `[${element}${count("H", hydrogens)}${count(charge > 0 ? "+" : "-", Math.abs(charge))}]`;
  }
}
