package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
)

type setCmd struct {
	Publish   setPublishCmd   `cmd:"" help:"Make the members given the whole content of the set."`
	Add       setAddCmd       `cmd:"" help:"Add members to a published set."`
	Remove    setRemoveCmd    `cmd:"" help:"Remove members from a published set."`
	Show      setShowCmd      `cmd:"" help:"List the members, one a line."`
	Verify    setVerifyCmd    `cmd:"" help:"Compare the replicas, member by member; exit 1 if one drifted."`
	Reconcile setReconcileCmd `cmd:"" help:"Repair the replicas that drifted."`
	Clear     setClearCmd     `cmd:"" help:"Delete the set from every slot."`
	Footprint setFootprintCmd `cmd:"" help:"Tell what memory the members would take, without publishing them."`
	Probe     setProbeCmd     `cmd:"" help:"Tell by which way each master lets the set be written."`
}

// setFlags say which set, and how to speak of it.
type setFlags struct {
	server
	Name string `required:"" help:"Name of the set."`
	JSON bool   `name:"json" help:"Print one JSON object."`
}

// writeFlags are those of commands that write.
type writeFlags struct {
	setFlags
	WaitReplicas int           `help:"Server replicas of each master that must acknowledge." default:"0"`
	Patience     time.Duration `help:"How long to keep trying slots that fail for a passing reason." default:"10s"`
	StepTime     time.Duration `help:"How long a master is kept busy at a time; its other clients wait for as long." placeholder:"850us"`
	DryRun       bool          `help:"Say what would be done, and do nothing."`
}

// into sets what the flags say.
func (f writeFlags) into(o *replset.Options) {
	o.WaitReplicas, o.Patience, o.StepTime = f.WaitReplicas, f.Patience, f.StepTime
}

// memberArgs are members from the command line or the standard input.
type memberArgs struct {
	Member []string `arg:"" optional:"" help:"Members; none, or a single -, reads them from the standard input, one a line."`
}

func (m memberArgs) read(con console) ([]string, error) {
	if len(m.Member) > 0 && !(len(m.Member) == 1 && m.Member[0] == "-") {
		return m.Member, nil
	}
	members := []string{}
	lines := bufio.NewScanner(con.in)
	lines.Buffer(nil, 512<<20) // a member's largest size in Redis
	for lines.Scan() {
		members = append(members, lines.Text())
	}
	return members, lines.Err()
}

// open connects, and returns the set and a function that ends the connection.
func (f setFlags) open(ctx context.Context, o replset.Options) (*replset.Set, func(), error) {
	client, err := f.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	set, err := replset.New(goredis.New(client), f.Name, &o)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return set, func() { client.Close() }, nil
}

// written is what a write prints with --json.
type written struct {
	Set     string   `json:"set"`
	Op      string   `json:"op"`
	Members int      `json:"members"`
	Slots   int      `json:"slots"`
	Failed  []failed `json:"failed,omitempty"`
	Seconds float64  `json:"seconds"`
	DryRun  bool     `json:"dryRun,omitempty"`
}

type failed struct {
	Slot  uint16 `json:"slot"`
	Error string `json:"error"`
}

// write runs one write with a progress bar, and reports it.
func (f writeFlags) write(ctx context.Context, con console, o replset.Options, op string, members int, do func(*replset.Set) error) error {
	r := written{Set: f.Name, Op: op, Members: members, DryRun: f.DryRun}
	start := time.Now()
	bar := newBar(con, "slots")
	bar.out = con.err
	f.into(&o)
	o.Progress = func(p replset.Progress) {
		r.Slots = p.Done
		bar.update(p.Done, p.Total)
	}
	set, end, err := f.open(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	if f.DryRun {
		return f.dryRun(ctx, con, set, r)
	}
	err = do(set)
	bar.clear()
	r.Seconds = time.Since(start).Seconds()
	var partial *replset.WriteError
	if errors.As(err, &partial) {
		r.Slots = partial.Written
		for _, e := range partial.Failed {
			r.Failed = append(r.Failed, failed{e.Slot, e.Err.Error()})
		}
	}
	if err != nil && partial == nil {
		return err
	}
	if f.JSON {
		return errors.Join(json.NewEncoder(con.out).Encode(r), err)
	}
	if err == nil {
		fmt.Fprintf(con.out, "%s %s: %s members in %s slots, %s\n", op, f.Name, thousands(members), thousands(r.Slots), seconds(time.Since(start)))
	}
	return err
}

// dryRun says what stands there now.
func (f writeFlags) dryRun(ctx context.Context, con console, set *replset.Set, r written) error {
	if f.JSON {
		return json.NewEncoder(con.out).Encode(r)
	}
	now := "not published"
	if n, err := set.Len(ctx, homeKey(set)); err == nil {
		now = thousands(n) + " members"
	} else if !errors.Is(err, replset.ErrReplicaMissing) {
		return err
	}
	_, err := fmt.Fprintf(con.out, "%s %s: would write %s members to 16,384 slots; now %s. Nothing was done.\n", r.Op, f.Name, thousands(r.Members), now)
	return err
}

// homeKey is a key in the slot whose replica has seen every write.
func homeKey(set *replset.Set) string { return set.Name() }

type setPublishCmd struct {
	writeFlags
	memberArgs
	Adopt    bool  `help:"Overwrite keys that stand at a replica's place and were not written by shardkit."`
	Empty    bool  `help:"Publish an empty set where no member is given, and not an error."`
	MaxBytes int64 `help:"Most memory on all masters, in bytes; -1 for no bound." default:"268435456"`
}

func (setPublishCmd) Help() string {
	return `Examples:
  shardkit set publish --addr 127.0.0.1:7000 --name active alice bob
  psql -Atc 'select id from accounts where blocked' | shardkit set publish --addr 127.0.0.1:7000 --name blocked`
}

func (c setPublishCmd) Run(ctx context.Context, con console) error {
	members, err := c.read(con)
	if err != nil {
		return err
	}
	if len(members) == 0 && !c.Empty {
		return errors.New("set publish: no member was given: say --empty if the set is to be empty")
	}
	return c.write(ctx, con, replset.Options{Adopt: c.Adopt, MaxBytes: c.MaxBytes}, "publish", len(members), func(s *replset.Set) error {
		return s.Publish(ctx, members)
	})
}

type setAddCmd struct {
	writeFlags
	memberArgs
}

func (setAddCmd) Help() string {
	return "Example:\n  shardkit set add --addr 127.0.0.1:7000 --name active carol"
}

func (c setAddCmd) Run(ctx context.Context, con console) error {
	members, err := c.read(con)
	if err != nil {
		return err
	}
	return c.write(ctx, con, replset.Options{}, "add", len(members), func(s *replset.Set) error { return s.Add(ctx, members...) })
}

type setRemoveCmd struct {
	writeFlags
	memberArgs
}

func (setRemoveCmd) Help() string {
	return "Example:\n  shardkit set remove --addr 127.0.0.1:7000 --name active carol"
}

func (c setRemoveCmd) Run(ctx context.Context, con console) error {
	members, err := c.read(con)
	if err != nil {
		return err
	}
	return c.write(ctx, con, replset.Options{}, "remove", len(members), func(s *replset.Set) error { return s.Remove(ctx, members...) })
}

type setClearCmd struct {
	writeFlags
	Yes bool `help:"Clear without being asked to confirm by --yes."`
}

func (setClearCmd) Help() string {
	return "Examples:\n  shardkit set clear --addr 127.0.0.1:7000 --name active --dry-run\n  shardkit set clear --addr 127.0.0.1:7000 --name active --yes"
}

func (c setClearCmd) Run(ctx context.Context, con console) error {
	if !c.Yes && !c.DryRun {
		return errors.New("set clear deletes the set from every slot: say --yes, or look first with --dry-run")
	}
	return c.write(ctx, con, replset.Options{}, "clear", 0, func(s *replset.Set) error { return s.Clear(ctx) })
}

type setShowCmd struct {
	setFlags
	Near string `help:"Read the replica in this key's slot; by default the one that has seen every write." placeholder:"KEY"`
}

func (setShowCmd) Help() string {
	return "Example:\n  shardkit set show --addr 127.0.0.1:7000 --name active"
}

func (c setShowCmd) Run(ctx context.Context, con console) error {
	set, end, err := c.open(ctx, replset.Options{})
	if err != nil {
		return err
	}
	defer end()
	key := c.Near
	if key == "" {
		key = homeKey(set)
	}
	members, err := set.Members(ctx, key)
	if err != nil {
		return err
	}
	slices.Sort(members)
	if c.JSON {
		return json.NewEncoder(con.out).Encode(struct {
			Set     string   `json:"set"`
			Members []string `json:"members"`
		}{c.Name, members})
	}
	out := bufio.NewWriter(con.out)
	for _, m := range members {
		fmt.Fprintln(out, m)
	}
	return out.Flush()
}

type setVerifyCmd struct {
	setFlags
	Sample  int    `help:"Slots to look at, chosen at random; 0 for all." default:"0"`
	Against string `help:"File with the members that should be there, one a line; - for the standard input." placeholder:"FILE"`
}

func (setVerifyCmd) Help() string {
	return `Examples:
  shardkit set verify --addr 127.0.0.1:7000 --name active
  shardkit set verify --addr 127.0.0.1:7000 --name active --sample 512 --json`
}

func (c setVerifyCmd) Run(ctx context.Context, con console) error {
	members, err := membersOf(con, c.Against)
	if err != nil {
		return err
	}
	bar := newBar(con, "slots")
	bar.out = con.err
	set, end, err := c.open(ctx, replset.Options{Progress: func(p replset.Progress) { bar.update(p.Done, p.Total) }})
	if err != nil {
		return err
	}
	defer end()
	v, err := set.Verify(ctx, &replset.VerifyOptions{Sample: c.Sample, Members: members})
	bar.clear()
	if err != nil {
		return err
	}
	if err := c.found(con, v); err != nil {
		return err
	}
	if !v.Consistent() {
		return fmt.Errorf("%s of %s replicas of %q drifted: shardkit set reconcile repairs them", thousands(len(v.Drifted)), thousands(v.Checked), c.Name)
	}
	return nil
}

// found prints what a verification found.
func (f setFlags) found(con console, v *replset.Verification) error {
	if f.JSON {
		type drift struct {
			Slot   uint16            `json:"slot"`
			Kind   replset.DriftKind `json:"kind"`
			Number int64             `json:"number,omitempty"`
			Error  string            `json:"error,omitempty"`
		}
		drifted := []drift{}
		for _, d := range v.Drifted {
			text := ""
			if d.Err != nil {
				text = d.Err.Error()
			}
			drifted = append(drifted, drift{d.Slot, d.Kind, d.Number, text})
		}
		return json.NewEncoder(con.out).Encode(struct {
			Set        string  `json:"set"`
			Number     int64   `json:"number"`
			Members    int     `json:"members"`
			Checked    int     `json:"checked"`
			Consistent bool    `json:"consistent"`
			Drifted    []drift `json:"drifted"`
		}{f.Name, v.Number, v.Members, v.Checked, v.Consistent(), drifted})
	}
	if v.Consistent() {
		_, err := fmt.Fprintf(con.out, "%s: %s replicas hold write %d, %s members\n", f.Name, thousands(v.Checked), v.Number, thousands(max(v.Members, 0)))
		return err
	}
	kinds := map[replset.DriftKind][]string{}
	for _, d := range v.Drifted {
		kinds[d.Kind] = append(kinds[d.Kind], fmt.Sprint(d.Slot))
	}
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "DRIFT\tREPLICAS\tSLOTS")
	for _, kind := range []replset.DriftKind{replset.Missing, replset.Older, replset.Newer, replset.Content, replset.Extra, replset.WrongType, replset.Foreign, replset.Unreachable} {
		if slots := kinds[kind]; len(slots) > 0 {
			shown := strings.Join(slots[:min(8, len(slots))], " ")
			if len(slots) > 8 {
				shown += " ..."
			}
			fmt.Fprintf(tab, "%s\t%s\t%s\n", kind, thousands(len(slots)), shown)
		}
	}
	return tab.Flush()
}

type setReconcileCmd struct {
	writeFlags
	Against string `help:"File with the members that should be there, one a line; - for the standard input. By default what the set itself proves." placeholder:"FILE"`
	Adopt   bool   `help:"Overwrite keys that stand at a replica's place and were not written by shardkit."`
}

func (setReconcileCmd) Help() string {
	return `Examples:
  shardkit set reconcile --addr 127.0.0.1:7000 --name active --dry-run
  shardkit set reconcile --addr 127.0.0.1:7000 --name active --against members.txt`
}

func (c setReconcileCmd) Run(ctx context.Context, con console) error {
	members, err := membersOf(con, c.Against)
	if err != nil {
		return err
	}
	o := replset.Options{Adopt: c.Adopt}
	c.into(&o)
	set, end, err := c.open(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	if c.DryRun {
		v, err := set.Verify(ctx, &replset.VerifyOptions{Members: members})
		if err != nil {
			return err
		}
		return c.found(con, v)
	}
	v, err := set.Reconcile(ctx, members)
	if v != nil {
		if perr := c.found(con, v); perr != nil {
			return perr
		}
	}
	if err == nil && !c.JSON && !v.Consistent() {
		fmt.Fprintf(con.out, "repaired %s replicas\n", thousands(len(v.Drifted)))
	}
	return err
}

type setFootprintCmd struct {
	setFlags
	memberArgs
}

func (setFootprintCmd) Help() string {
	return "Example:\n  shardkit set footprint --addr 127.0.0.1:7000 --name blocked < members.txt"
}

func (c setFootprintCmd) Run(ctx context.Context, con console) error {
	members, err := c.read(con)
	if err != nil {
		return err
	}
	set, end, err := c.open(ctx, replset.Options{})
	if err != nil {
		return err
	}
	defer end()
	f, err := set.Footprint(ctx, members)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(struct {
			Set        string `json:"set"`
			Members    int    `json:"members"`
			Encoding   string `json:"encoding"`
			PerReplica int64  `json:"perReplicaBytes"`
			Masters    int64  `json:"mastersBytes"`
			Replicas   int64  `json:"replicasBytes"`
			Measured   bool   `json:"measured"`
		}{c.Name, f.Members, f.Encoding, f.PerReplica, f.Masters, f.Replicas, f.Measured})
	}
	how := "measured on the server"
	if !f.Measured {
		how = "estimated: the server does not measure"
	}
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "members\t%s\n", thousands(f.Members))
	fmt.Fprintf(tab, "a replica\t%s bytes (%s, %s)\n", thousands(int(f.PerReplica)), f.Encoding, how)
	fmt.Fprintf(tab, "all masters\t%s\n", mebibytes(f.Masters))
	fmt.Fprintf(tab, "their replicas\t%s\n", mebibytes(f.Replicas))
	return tab.Flush()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// membersOf reads a file of members, one a line; no file is nil.
func membersOf(con console, file string) ([]string, error) {
	switch file {
	case "":
		return nil, nil
	case "-":
		return memberArgs{}.read(con)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	defer f.Close()
	con.in = f
	return memberArgs{}.read(con)
}
